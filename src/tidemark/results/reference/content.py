"""Reference results: the results of one Tidemark run of a study, small enough to be stored with the code.

There is one folder per study, and one more for each group of other stacks measured separately. It contains a
`Reference` as `reference.json`, the study's first figure, and `tables`: the tables as JSON, except those without rows
and those with one row per run, which are in the archive that the reference results were computed from.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tidemark.analysis.measures import Measures
from tidemark.analysis.metrics import NotAvailable
from tidemark.analysis.statistics import Estimate
from tidemark.paths import remove_others, write_if_changed
from tidemark.results.claims.claims import UNTESTED
from tidemark.results.claims.judge import THESIS, ClaimReport, ClaimVerdict, Row
from tidemark.results.tables.table import PER_RUN, Table
from tidemark.runs.runset import RunSet
from tidemark.runs.serde import Fields, Pairs, read, to_json
from tidemark.runs.spec import MAIN
from tidemark.runs.views import dataset_label, days, harness_words, in_order, machine_words, mixture, unfinished

SCHEMA_VERSION = 1
FILE, TABLES = "reference.json", "tables"


@dataclass(frozen=True, slots=True, order=True)
class Version:
    """Version of a program under a stack, as reported by the program."""

    stack: str
    program: str
    version: str


@dataclass(frozen=True, slots=True)
class About:
    """Origin of results. `windows` are in seconds, to two digits, excluding those that ended with their work; `runs`
    and `repeats` are the maxima over the series. `rounds` is 0 if the systems were not measured in turn, and `commits`
    if windows ended by time alone.

    `archive` is the SHA-256 of the archive that they were made from, None if there was no archive.
    """

    study: str
    protocols: tuple[str, ...]
    windows: tuple[float, ...]
    runs: int
    repeats: int
    stacks: tuple[str, ...]
    dataset: str
    machines: tuple[str, ...]
    harnesses: tuple[str, ...]
    versions: tuple[Version, ...]
    marked_runs: int
    all_runs: int
    remarks: tuple[str, ...]
    archive: str | None = None
    all_repeated: bool = True  # True if all series with runs have equally many repeats, except the harness
    rounds: int = 0
    commits: int = 0

    @classmethod
    def of(cls, study: str, whole: RunSet, archive: str | None = None) -> About:
        """Return the origin of the series of `study` in `whole`."""
        run_set = whole.of(study)
        runs = run_set.runs
        main = [run for series in run_set.series if series.sweep == MAIN for run in series.runs]
        versions = {
            Version(series.stack, name, version)
            for series in run_set.series
            for run in series.runs
            for name, version in run.manifest.versions
        }
        repeats = {
            sum(bool(each.runs) for each in series.repeats)
            for series in run_set.series
            if series.runs and not series.is_null_baseline
        }
        return cls(
            study=study,
            protocols=tuple(sorted({series.protocol for series in run_set.series})),
            windows=tuple(sorted({float(f"{run.manifest.window_s:.2g}") for run in runs if run.manifest.is_timed_out})),
            runs=max((len(repeat.runs) for repeat in run_set.repeats), default=0),
            repeats=max((len(series.repeats) for series in run_set.series), default=0),
            stacks=in_order(run_set),
            dataset=dataset_label(run_set),
            machines=tuple(map(machine_words, run_set.machines)),
            harnesses=tuple(map(harness_words, run_set.harnesses)),
            versions=tuple(sorted(versions)),
            marked_runs=sum(bool(run.manifest.marks) for run in runs),
            all_runs=len(runs),
            remarks=(*unfinished(run_set), *mixture(run_set)),
            archive=archive,
            all_repeated=len(repeats) < 2,
            rounds=max((repeat.number for repeat in run_set.repeats if repeat.block), default=0),
            commits=max((int(dict(run.manifest.config).get("commits") or 0) for run in main), default=0),
        )

    @property
    def name(self) -> str:
        """Folder name: the study, followed by the stacks unless THESIS, the stack of the claims, is among them."""
        return self.study if THESIS in self.stacks else "-".join((self.study, *self.stacks))

    @property
    def sizes(self) -> str:
        """Description of the protocol."""
        named = " and ".join(self.protocols)
        lasting = " to ".join(dict.fromkeys(f"{window:g}" for window in (*self.windows[:1], *self.windows[-1:])))
        windows = f"windows of {lasting} s" if lasting else "windows as long as their work takes"
        if self.rounds:
            work = f"makes {self.commits:,} commits" if self.commits else f"is measured in {windows}"
            rounds = "1 round" if self.rounds == 1 else f"each of {self.rounds} rounds"
            return f"protocol {named}, in which each system {work} in {rounds}, and then once more after a cold start"
        if self.commits:
            windows = f"windows of {self.commits:,} commits"
        runs = f"up to {self.runs} runs" if self.runs > 1 else "one run"
        often = {1: "once", 2: "twice"}.get(self.repeats, f"{self.repeats} times")
        measured = f"each series measured {often}" if self.all_repeated else f"series measured up to {often}"
        return f"{named}, {windows}, {runs}, {measured}"


@dataclass(frozen=True, slots=True)
class Held:
    """Reference result of one claim under one stack: `ours` is None if there is no value, for `reason`."""

    claim: str
    stack: str
    statement: str
    published: str
    ours: Estimate | None
    verdict: str
    reason: str | None

    @property
    def key(self) -> tuple[str, str]:
        return self.claim, self.stack

    def judgement(self, wanted: str, source: str) -> ClaimVerdict:
        """Return it as a judgement whose runs are those of `source`."""
        return ClaimVerdict(self.stack, wanted, self.ours, self.verdict, None, None, self.reason, (source,))


@dataclass(frozen=True, slots=True)
class Figure:
    """First figure of the study: its file, title and caption."""

    file: str
    title: str
    caption: str


@dataclass(frozen=True, slots=True)
class RunValues:
    """Values of one counted run, by name of the headline quantity: those that it has, to six digits."""

    system: str
    mode: str
    stack: str
    sweep: str
    repeat: int  # the round that it was measured in
    run: int
    position: int  # of its series in the plan
    started_at: str
    values: Pairs[float]


@dataclass(frozen=True, slots=True)
class Reference:
    """Reference results of one study; `figure` is None if its runs could not show it.

    From `runs` anyone can compute the intervals again; results of earlier versions have none.
    """

    about: About
    held: tuple[Held, ...]
    figure: Figure | None = None
    schema_version: int = SCHEMA_VERSION
    runs: tuple[RunValues, ...] = ()

    @property
    def tests_claims(self) -> bool:
        """False if no claim was tested: results of one question, such as policies of upkeep, are nothing to expect."""
        return any(each.verdict != UNTESTED for each in self.held)

    @property
    def days(self) -> tuple[str, ...]:
        """Days on which the first and the last run began, once if it is the same; empty if they were not recorded."""
        return days(run.started_at for run in self.runs)

    @property
    def last(self) -> str:
        """Return the date and time at which the last run began; empty if it was not recorded."""
        return max((run.started_at for run in self.runs), default="")


def run_values(measures: Measures) -> tuple[RunValues, ...]:
    """Return the headline quantities of each counted run, in the order in which runs began."""
    found = []
    for series in measures.run_set.series:
        identity = series.system, series.mode, series.stack, series.sweep
        for run in series.runs:
            values = []
            for quantity in measures.quantities.headline:
                with suppress(NotAvailable):
                    values.append((quantity.name, float(f"{measures.of_run(quantity, run).value:.6g}")))
            when = run.repeat, run.number, run.manifest.series.position, run.manifest.started_at
            found.append(RunValues(*identity, *when, tuple(values)))
    return tuple(sorted(found, key=lambda each: (each.started_at, each.position, each.run)))


def of_ledger(ledger: ClaimReport) -> tuple[Held, ...]:
    """Return the reference result of each claim of `ledger` under each of its stacks."""
    return tuple(_held(row, each) for row in ledger.rows for each in row.judgements)


def _held(row: Row, judgement: ClaimVerdict) -> Held:
    ours, reason, claim = judgement.ours, judgement.reason, row.claim
    if ours is not None and not math.isfinite(ours.value):
        ours, reason = None, "no finite number"
    return Held(claim.id, judgement.stack, claim.statement, claim.published.shown, ours, judgement.verdict, reason)


def write_reference(reference: Reference, tables: Sequence[Table], drawing: str, folder: Path) -> list[Path]:
    """Write the reference results to `folder`, remove obsolete files, and return the paths written.

    `drawing` is the content of the figure's file.
    """
    shown = (table for table in tables if table.rows and not set(PER_RUN) <= set(table.columns))
    chosen = {f"{TABLES}/{table.name}.json": table for table in shown}
    contents = {FILE: to_json(reference), **{name: table.json() for name, table in chosen.items()}}
    if reference.figure is not None:
        contents[reference.figure.file] = drawing
    for name, content in contents.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        write_if_changed(folder / name, content)
    remove_others(folder, contents.keys(), (".json", ".svg"))
    return [folder / name for name in contents]


def folders(place: Path) -> list[Path]:
    """Return the folders of reference results at `place`, which is one or contains several; empty if none."""
    return sorted(path.parent for path in (place / FILE, *place.glob(f"*/{FILE}")) if path.is_file())


def read_references(place: Path) -> list[Reference]:
    """Return the reference results at `place`; raise AnalysisError, naming file and key, if one is invalid."""
    return [read_reference(folder) for folder in folders(place)]


def read_reference(folder: Path) -> Reference:
    """Return the reference results in `folder`; raise AnalysisError, naming file and key, if they are invalid."""
    fields = Fields.read(folder / FILE)
    fields.check_version(SCHEMA_VERSION)
    return read(Reference, fields)
