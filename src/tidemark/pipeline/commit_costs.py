"""Costs of commits and of policies for `advise`: from a result set, or from files that are stored with the code."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from tidemark.errors import AnalysisError
from tidemark.paths import write_if_changed
from tidemark.pipeline.build import USUAL, costs, parts
from tidemark.planner.cost_model import Age, Cost
from tidemark.planner.frontier import PolicyCost
from tidemark.results.archive.unpack import opened
from tidemark.results.reference.content import About
from tidemark.runs.runset import RunSet
from tidemark.runs.serde import Fields, read, to_json
from tidemark.studies.study import no_costs, registry

FILE, POLICIES, KEPT = "costs.json", "policies.json", Path("reference")
SCHEMA_VERSION = 1


@dataclass(frozen=True, slots=True)
class CommitCosts:
    """Measured costs of commits and of policies of upkeep, and ages of events, with their origins and days."""

    costs: tuple[Cost, ...]
    ages: tuple[Age, ...]
    about: tuple[About, ...]
    days: tuple[str, ...]
    policies: tuple[PolicyCost, ...] = ()
    schema_version: int = SCHEMA_VERSION

    @classmethod
    def of(cls, run_set: RunSet, place: Path, upkeep: bool = False) -> CommitCosts:
        """Return those of a result set; raise AnalysisError, naming its `place`, if no study in it measures them.

        With `upkeep` only policies are needed, and there may be none of these.
        """
        made = parts(run_set)
        points = costs(made)
        if not upkeep and not any(isinstance(each, Cost) for each in points):
            able = ", ".join(name for name, study in registry().items() if study.results.costs is not no_costs)
            raise AnalysisError(
                f"{place}: no run here measures the cost of a commit; studies that time commits or ages of events: "
                f"{able}; without results of your own: --results {KEPT}"
            )
        return cls(
            tuple(each for each in points if isinstance(each, Cost)),
            tuple(each for each in points if isinstance(each, Age)),
            tuple(About.of(part.study.name, run_set) for part in made if part.results.costs is not no_costs),
            tuple(sorted({run.manifest.started_at[:10] for run in run_set.runs})),
            tuple(policy for part in made for policy in part.results.policies(part.measures)),
        )

    @property
    def origin(self) -> str:
        """Description of where and when they were measured, and with which clients."""
        named = (machine for each in self.about for machine in each.machines)
        machines = dict.fromkeys(machine.partition(" (identity")[0] for machine in named)
        clients = dict.fromkeys(
            f"{each.program} {each.version}"
            for about in self.about
            for each in about.versions
            if each.program in ("duckdb", "pyiceberg", "deltalake")
        )
        days = dict.fromkeys((self.days[0], self.days[-1]))
        return f"{', '.join(machines)}; {' to '.join(days)}; {', '.join(clients)}"

    @property
    def marks(self) -> list[str]:
        """Return a sentence for each study of which runs are marked."""
        return [
            f"{each.marked_runs:,} of {each.all_runs:,} runs of the study {each.study} behind these numbers are "
            "marked: disturbed by other work, or not as cold as they should be"
            for each in self.about
            if each.marked_runs
        ]


def keep_costs(place: Path, target: Path) -> list[Path]:
    """Write the costs in `place`, a results folder or an archive, below `target`; return the paths of the files.

    Costs of commits and of policies have a file each, so that they can be of different days.
    """
    with opened(place) as run_set:
        found = CommitCosts.of(run_set, place, upkeep=True)
        if not found.policies:
            found = CommitCosts.of(run_set, place)
    files = {FILE: replace(found, policies=())} if found.costs else {}
    files |= {POLICIES: replace(found, costs=(), ages=())} if found.policies else {}
    for name, each in files.items():
        write_if_changed(target / name, to_json(each))
    return [target / name for name in files]


def read_costs(place: Path | None, upkeep: bool = False) -> tuple[CommitCosts, Path]:
    """Return the costs in `place`, which is a results folder, an archive or a folder with kept costs, and the place.

    Without one it is the results folder, or, if nothing was measured, the costs that are stored with the code.
    `upkeep` is as in `CommitCosts.of`; a folder of kept costs has policies in a file of their own.
    """
    place = place or (USUAL if (USUAL / "plan.json").is_file() or not (KEPT / FILE).is_file() else KEPT)
    path = place / (POLICIES if upkeep and (place / POLICIES).is_file() else FILE)
    if not path.is_file():
        with opened(place) as run_set:
            return CommitCosts.of(run_set, place, upkeep), place
    fields = Fields.read(path)
    fields.check_version(SCHEMA_VERSION)
    return read(CommitCosts, fields), path
