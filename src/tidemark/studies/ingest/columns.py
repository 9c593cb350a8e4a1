"""Old place of the columns that all parts share."""

from tidemark.studies.ingest.part import UNEQUAL, VERDICT, column_of, hot_cell, verdict_of

__all__ = ["UNEQUAL", "VERDICT", "column_of", "hot_cell", "verdict_of"]
