"""Estimated duration of planned series, from their windows and overheads."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from tidemark.studies.registry import registry

if TYPE_CHECKING:
    from tidemark.results.reference.artifact import Effort
    from tidemark.runs.spec import SeriesSpec

SERIES_SECONDS, RUN_SECONDS = 8.0, 5.0  # overhead of a series and of a run, in addition to windows
RESULTS_SECONDS = 45.0  # for tables, figures, report and paper, once all is measured
SHOWN = ("smoke", "quick")  # the protocols that every study has


def likely_seconds(series: Iterable[SeriesSpec]) -> float:
    """Return the expected seconds of all of `series`, one after another; one that cannot run takes none."""
    windows = ((each, registry()[each.study].workload.likely_seconds(each)) for each in series)
    return sum(SERIES_SECONDS + each.runs * (seconds + RUN_SECONDS) for each, seconds in windows if seconds)


def seconds_of(configuration: Path, command: str) -> float:
    """Return the expected seconds of './tidemark all --config KEY=VALUE...' once all is set up, by its plan."""
    from tidemark.config import load
    from tidemark.pipeline.plan import make_plan

    series = make_plan(load(configuration, [word for word in shlex.split(command) if "=" in word])).series
    return likely_seconds(series) + RESULTS_SECONDS


def efforts(configuration: Path) -> list[Effort]:
    """Return the effort of each study under the protocols that all studies have, with `configuration`'s settings."""
    from tidemark.config import load
    from tidemark.pipeline.plan import make_plan
    from tidemark.results.reference.artifact import Effort

    made = []
    for name, study in registry().items():
        for protocol in SHOWN:
            series = make_plan(load(configuration, [f"studies=[{name}]", f"protocol={protocol}"])).series
            made.append(Effort(name, study.title, protocol, len(series), likely_seconds(series) + RESULTS_SECONDS))
    return made
