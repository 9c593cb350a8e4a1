"""Study of a published question, with everything that answers it again.

Each study has a folder next to this file:

    config.py    CONFIG: the class of its section of config.yaml, which declares every key
    study.py     STUDY = Study(...): its name and its question; `plan(config, base)` and `limits(config)`: the series
                 that the section requests; WORKLOAD: the work done in a window
    results.py   RESULTS = Results(...): how its runs become tables, figures, claims and a chapter

The files are separate and imported on demand, because a process that plans or measures must not load the analysis
libraries. In a large study, `plan` and `limits` may be in a plan.py and WORKLOAD in a workload.py; in a small one,
RESULTS may be in study.py. Most of what a results.py combines is in assembly.py, next to this file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tidemark.runs.plan import Goal

if TYPE_CHECKING:
    from tidemark.analysis.measures import Measures
    from tidemark.analysis.metrics import MetricSet
    from tidemark.config import Config
    from tidemark.measure.workload import Workload
    from tidemark.planner.cost_model import Age, Cost
    from tidemark.planner.frontier import PolicyCost
    from tidemark.results.claims.claims import ClaimSet
    from tidemark.results.figures.context import FigureSpec
    from tidemark.results.publication import PaperSection, Publication
    from tidemark.results.reference.run_files import RunFiles
    from tidemark.results.report.summary_table import SummaryMetric
    from tidemark.results.tables.table import Table, TableBuilder
    from tidemark.runs.runset import RunSet
    from tidemark.runs.spec import SeriesSpec


@dataclass(frozen=True, slots=True)
class Study:
    """Study, with the `title` that readers see and the `question` that it answers.

    `name` is the name of its folder, of its section of config.yaml and of the study on the command line.
    """

    name: str
    title: str
    question: str

    def plan(self, config: Config, base: SeriesSpec) -> list[SeriesSpec]:
        """Return the series that `config` requests under one stack; `base` holds the fields that all of them share."""
        made: list[SeriesSpec] = self._part("plan", "plan")(config, base)
        return made

    def limits(self, config: Config) -> list[str]:
        """Return one sentence for each request that this machine cannot satisfy; none if the study has no `limits`."""
        found: list[str] = self._part("plan", "limits", lambda _config: [])(config)
        return found

    def goal(self, config: Config) -> Goal:
        """Return when the rounds of its series end; all are measured if the study has no `goal`."""
        found: Goal = self._part("plan", "goal", lambda _config: Goal())(config)
        return found

    @property
    def workload(self) -> type[Workload]:
        """Workload class: the work done in the study's windows."""
        found: type[Workload] = self._part("workload", "WORKLOAD")
        return found

    @property
    def results(self) -> Results:
        """Functions that turn the study's runs into results. Raises TypeError if RESULTS is not a Results."""
        found = self._part("results", "RESULTS")
        if not isinstance(found, Results):
            raise TypeError(f"{self.name}/results.py: RESULTS is {type(found).__name__}; allowed: Results")
        return found

    def _part(self, module: str, name: str, *default: Any) -> Any:
        package = f"{__package__}.{self.name}"
        place = module if find_spec(f"{package}.{module}") is not None else "study"
        return getattr(import_module(f"{package}.{place}"), name, *default)


def no_costs(_measures: Measures) -> Iterator[Any]:
    """Return an empty iterator, for a study that does not measure commit costs, or policies of upkeep."""
    return iter(())


@dataclass(frozen=True, slots=True)
class Results:
    """Parts that turn a study's runs into results, in addition to the tables and figures that all studies share.

    `views` is SQL that creates the study's views in the metrics database. `notes` return the notes required next to its
    numbers in the report, and `questions` are the columns of the report's first table. `costs` yields measured commit
    times, from which other loads are predicted, and `policies` those of policies of upkeep. `first_figure` names the
    figure that represents the study where one picture is shown; empty means the first figure. `run_files` describes
    what the study adds to the files of its runs.
    """

    quantities: MetricSet
    publication: Publication
    tables: Callable[[TableBuilder], Iterator[Table]]
    figure_specs: Callable[[], Iterator[FigureSpec]]
    claims: ClaimSet
    paper: PaperSection
    notes: Callable[[RunSet], tuple[str, ...]]
    questions: tuple[SummaryMetric, ...] = ()
    views: str = ""
    costs: Callable[[Measures], Iterator[Cost | Age]] = no_costs
    policies: Callable[[Measures], Iterator[PolicyCost]] = no_costs
    first_figure: str = ""
    run_files: RunFiles | None = None


class Studies(Mapping[str, Study]):
    """Studies by name, sorted by name. A study is imported when it is asked for: a window needs only its own."""

    def __init__(self) -> None:
        self._names = [path.parent.name for path in sorted(Path(__file__).parent.glob("*/study.py"))]

    def __getitem__(self, name: str) -> Study:
        """Return a study; raise KeyError if no folder has this name, TypeError if its STUDY is not one of this name."""
        if name not in self._names:
            raise KeyError(name)
        study = import_module(f"{__package__}.{name}.study").STUDY
        if not isinstance(study, Study) or study.name != name:
            raise TypeError(f"{__package__}.{name}.study: STUDY is {study!r}; allowed: a Study called '{name}'")
        return study

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


@cache
def registry() -> Mapping[str, Study]:
    """Return the studies by name."""
    return Studies()
