"""What a study is: a question that somebody published an answer to, with all that answers it again.

Each has a folder beside this file:

    config.schema.yaml  the schema of its section of config.yaml
    study.py            STUDY = Study(...): its name and its question
    plan.py             plan(config, base) and limits(config): the series that the section asks for
    workload.py         WORKLOAD: what happens in a window
    results.py          RESULTS = Results(...): how its runs become tables, figures, claims and a chapter

They are apart, and imported when they are asked for, since a process that plans or measures must not load what numbers
are made with. Where a study is small, plan, limits, WORKLOAD or RESULTS may stand in study.py instead. Most of what a
results.py puts together is in assembly.py, beside this file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tidemark.analysis.costs import Age, Cost
    from tidemark.analysis.measures import Measures
    from tidemark.analysis.quantities import Quantities
    from tidemark.config import Config
    from tidemark.measure.workload import Workload
    from tidemark.results.claims.claims import ClaimBook
    from tidemark.results.figures.studio import Sketch
    from tidemark.results.paper.contribution import Contribution
    from tidemark.results.publication import Publication
    from tidemark.results.report.questions import Question
    from tidemark.results.tables.table import Table, Workshop
    from tidemark.runs.runset import RunSet
    from tidemark.runs.spec import SeriesSpec


@dataclass(frozen=True, slots=True)
class Study:
    """`name` is that of its folder, of its section of config.yaml and on the command line.

    `title` is what readers know it by, `question` what it answers.
    """

    name: str
    title: str
    question: str

    def plan(self, config: Config, base: SeriesSpec) -> list[SeriesSpec]:
        """The series that `config` asks for under one stack; `base` has what is the same for all of them."""
        made: list[SeriesSpec] = self._part("plan", "plan")(config, base)
        return made

    def limits(self, config: Config) -> list[str]:
        """What was asked for and this machine cannot give, in words."""
        found: list[str] = self._part("plan", "limits")(config)
        return found

    @property
    def workload(self) -> type[Workload]:
        """What happens in its windows."""
        found: type[Workload] = self._part("workload", "WORKLOAD")
        return found

    @property
    def results(self) -> Results:
        """How its runs become results."""
        found = self._part("results", "RESULTS")
        if not isinstance(found, Results):
            raise TypeError(f"{self.name}/results.py: RESULTS is {type(found).__name__}; allowed: Results")
        return found

    def _part(self, module: str, name: str) -> Any:
        package = f"{__package__}.{self.name}"
        place = module if find_spec(f"{package}.{module}") is not None else "study"
        return getattr(import_module(f"{package}.{place}"), name)


def no_costs(_measures: Measures) -> Iterator[Cost | Age]:
    """Of a study that says nothing of what commits of a table cost."""
    return iter(())


@dataclass(frozen=True, slots=True)
class Results:
    """How the runs of a study become results, beside the tables and figures that all studies have.

    `views` is SQL that makes its views of the metrics database; `notes` are what must be said beside its numbers in
    the report, and `questions` what its first table asks of each system. `costs` are what its runs say of the time of
    commits, from which other loads are predicted. `first_figure` names the sketch that stands for the study where one
    picture is shown; the first one where it is empty.
    """

    quantities: Quantities
    publication: Publication
    tables: Callable[[Workshop], Iterator[Table]]
    sketches: Callable[[], Iterator[Sketch]]
    claims: ClaimBook
    paper: Contribution
    notes: Callable[[RunSet], tuple[str, ...]]
    questions: tuple[Question, ...] = ()
    views: str = ""
    costs: Callable[[Measures], Iterator[Cost | Age]] = no_costs
    first_figure: str = ""
