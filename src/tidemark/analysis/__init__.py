"""From run files to the metrics database, tables and figures. Nothing here measures anything.

Each function takes the results folder of a workspace, or of an unpacked archive.
"""

from tidemark.analysis.build import build_database, build_figures, build_tables

__all__ = ["build_database", "build_figures", "build_tables"]
