"""What the command line and the rules call: each builds one kind of result from the run files alone."""

from __future__ import annotations

from pathlib import Path

from tidemark.analysis import tables_beyond, tables_setup, tables_stacks, tables_storage, tables_studies, tables_thesis
from tidemark.analysis.database import build_database
from tidemark.analysis.measures import Measures
from tidemark.analysis.runs import RunSet
from tidemark.analysis.tables import Workshop, write_tables

__all__ = ["build_database", "build_figures", "build_tables"]


def build_tables(results: Path) -> Path:
    """Write every table into results/tables and return its index."""
    workshop = Workshop(Measures(RunSet.load(results)))
    chapters = (tables_setup, tables_thesis, tables_beyond, tables_storage, tables_studies, tables_stacks)
    write_tables([table for chapter in chapters for table in chapter.build(workshop)], results / "tables")
    return results / "tables" / "index.json"


def build_figures(results: Path) -> Path:
    """Draw every figure into results/figures and return its index."""
    # Matplotlib takes half a second to import, which no other command has to wait for.
    from tidemark.analysis import figures, figures_beyond, figures_stacks, figures_studies, figures_thesis
    from tidemark.analysis.studio import Studio

    studio = Studio.of(Measures(RunSet.load(results)))
    chapters = (figures_studies, figures_thesis, figures_beyond, figures_stacks)
    figures.draw(studio, [sketch for chapter in chapters for sketch in chapter.sketches()], results / "figures")
    return results / "figures" / "index.json"
