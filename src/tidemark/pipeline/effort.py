"""How long planned series are likely to take, from their windows and what surrounds them."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from tidemark.studies.registry import registry

if TYPE_CHECKING:
    from tidemark.results.reference.artifact import Effort
    from tidemark.runs.spec import SeriesSpec

SERIES_SECONDS, RUN_SECONDS = 8.0, 5.0  # that a series and a run take beside their windows
RESULTS_SECONDS = 45.0  # that tables, figures, report and paper take once all is measured
SHOWN = ("smoke", "quick")  # the protocols that every study has


def likely_seconds(series: Iterable[SeriesSpec]) -> float:
    """Of all of `series`, one after another; one that cannot run takes nothing."""
    windows = ((each, registry()[each.study].workload.likely_seconds(each)) for each in series)
    return sum(SERIES_SECONDS + each.runs * (seconds + RUN_SECONDS) for each, seconds in windows if seconds)


def seconds_of(configuration: Path, command: str) -> float:
    """How long './tidemark all --config KEY=VALUE...' is likely to take once all is set up, by the plan it makes."""
    from tidemark.config import load
    from tidemark.pipeline.plan import make_plan

    series = make_plan(load(configuration, [word for word in shlex.split(command) if "=" in word])).series
    return likely_seconds(series) + RESULTS_SECONDS


def efforts(configuration: Path) -> list[Effort]:
    """What each study takes under the protocols that every study has, with the settings of `configuration`."""
    from tidemark.config import load
    from tidemark.pipeline.plan import make_plan
    from tidemark.results.reference.artifact import Effort

    made = []
    for name, study in registry().items():
        for protocol in SHOWN:
            series = make_plan(load(configuration, [f"studies=[{name}]", f"protocol={protocol}"])).series
            made.append(Effort(name, study.title, protocol, len(series), likely_seconds(series) + RESULTS_SECONDS))
    return made
