"""The run files of one configuration, read and checked: the only thing that the analysis knows."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from tidemark.analysis.circumstances import Harness
from tidemark.analysis.fields import Fields
from tidemark.analysis.manifest import DEFAULT_DURABILITY, Dataset, Machine
from tidemark.analysis.run import Run, read_run
from tidemark.errors import AnalysisError

MAIN = "main"
# As the thesis shows them, then what it wanted to show, then the rest by name.
ORDER = (
    "ducklake",
    "ducklake-inlined",
    "ducklake-inlined-postgres",
    "iceberg-pyiceberg",
    "iceberg-duckdb",
    "delta-rs",
    "delta-duckdb",
)


@dataclass(frozen=True, slots=True)
class Attempt:
    """One time that a series was begun; `reason` says why it did not complete."""

    number: int
    started_at: str
    ended_at: str | None
    status: str  # complete, failed, killed or interrupted
    reason: str | None
    exit_code: int | None

    @classmethod
    def parse(cls, f: Fields) -> Attempt:
        return cls(
            f.integer("number"),
            f.text("started_at"),
            f.maybe_text("ended_at"),
            f.text("status"),
            f.maybe_text("reason"),
            f.maybe_integer("exit_code"),
        )


@dataclass(frozen=True, slots=True)
class Disturbed:
    """A run that was measured once more because something else was at work; it is kept, and counts for nothing."""

    number: int
    attempt: int
    directory: Path
    reasons: tuple[str, ...]
    run: Run | None  # None where its files are not there any more


@dataclass(frozen=True, slots=True)
class Repeat:
    """One time that a series was measured, on one warm-up history: run 0 from a cold start, then the hot runs.

    `runs` are those that count, whatever `status` says of the rest.
    """

    id: str
    number: int  # from 1
    position: int
    status: str
    reason: str | None
    runs: tuple[Run, ...]
    attempts: tuple[Attempt, ...] = ()  # oldest first; none in run files of version 1
    disturbed: tuple[Disturbed, ...] = ()

    @property
    def failures(self) -> tuple[Attempt, ...]:
        """The attempts that did not complete."""
        return tuple(attempt for attempt in self.attempts if attempt.status != "complete")

    @property
    def cold_run(self) -> Run | None:
        return next((run for run in self.runs if run.cold), None)

    @property
    def hot_runs(self) -> tuple[Run, ...]:
        return tuple(run for run in self.runs if not run.cold)


@dataclass(frozen=True, slots=True)
class Series:
    """One system in one mode, with all of its repeats."""

    id: str
    system: str
    title: str
    mode: str
    batch_size: int
    threads: int
    protocol: str
    stack: str
    study: str
    repeats: tuple[Repeat, ...]  # one or more
    read_ahead: int = 1  # events read in one go at most
    cpus: int | None = None  # processors that client and servers were held to

    @property
    def runs(self) -> tuple[Run, ...]:
        """The runs of all repeats that count, one repeat after the other."""
        return tuple(run for repeat in self.repeats for run in repeat.runs)

    @property
    def reason(self) -> str | None:
        """Why the first repeat that is not complete is not."""
        return next((repeat.reason for repeat in self.repeats if repeat.status != "complete"), None)

    @property
    def status(self) -> str:
        """complete, or how the first repeat ended that is not."""
        return next((repeat.status for repeat in self.repeats if repeat.status != "complete"), "complete")

    @property
    def cold_runs(self) -> tuple[Run, ...]:
        return tuple(run for run in self.runs if run.cold)

    @property
    def hot_runs(self) -> tuple[Run, ...]:
        return tuple(run for run in self.runs if not run.cold)

    def repeat_of(self, run: Run) -> int | None:
        """The repeat of one of its runs, for people; None where there is only one."""
        return run.repeat if len(self.repeats) > 1 else None

    @property
    def is_harness(self) -> bool:
        return self.runs[0].manifest.system.is_harness if self.runs else self.system == "null"

    @property
    def reads_in_goes(self) -> bool:
        """Whether a single event's time to read is its share of a go of reading: a mean, not a time that was taken."""
        return self.mode == "single" and self.read_ahead > 1

    @property
    def mode_title(self) -> str:
        return "single" if self.mode == "single" else f"batch of {self.batch_size:,}"

    def run(self, number: int) -> Run | None:
        """The run of a number, of the first repeat that has one."""
        return next((run for run in self.runs if run.number == number), None)

    def missing(self, number: int | None = None) -> str:
        """Why there is no run, or not that run."""
        if self.reason:
            return self.reason.splitlines()[0]
        return "no run" if number is None else f"the protocol '{self.protocol}' has no run {number}"


@dataclass(frozen=True, slots=True)
class RunSet:
    """The series of one configuration with the runs that were measured for them."""

    results: Path
    config: Fields
    series: tuple[Series, ...]
    notes: tuple[str, ...] = ()  # where the machine could not give what the configuration asked for

    @property
    def repeats(self) -> tuple[Repeat, ...]:
        """Each time that a series was measured."""
        return tuple(repeat for series in self.series for repeat in series.repeats)

    @property
    def runs(self) -> tuple[Run, ...]:
        return tuple(run for repeat in self.repeats for run in repeat.runs)

    @property
    def coverage(self) -> str:
        """What intervals of series cover, as a sentence."""
        if any(len(series.repeats) > 1 for series in self.series):
            return "They cover how repeats of a series differ."
        return "Each series was measured once: how series of one system differ is not in them."

    @property
    def kept_runs(self) -> tuple[Run, ...]:
        """The disturbed runs that are kept beside those that count."""
        return tuple(each.run for repeat in self.repeats for each in repeat.disturbed if each.run is not None)

    @property
    def harnesses(self) -> tuple[Harness | None, ...]:
        """The code that measured, once for each digest; None stands for runs that do not name it."""
        found = (run.manifest.harness for run in self.runs)
        return tuple({each.digest if each else None: each for each in found}.values())

    @property
    def datasets(self) -> tuple[Dataset, ...]:
        """Each dataset that runs used, once; one in a sound run set."""
        return tuple({run.manifest.dataset.sha256: run.manifest.dataset for run in self.runs}.values())

    @property
    def machines(self) -> tuple[Machine, ...]:
        return tuple(dict.fromkeys(run.manifest.machine for run in self.runs))

    @property
    def stacks(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(series.stack for series in self.series))

    @property
    def stack(self) -> str:
        """The stack that the thesis's tables and figures are made for."""
        return "thesis" if "thesis" in self.stacks else self.stacks[0]

    def select(
        self, *, mode: str | None = None, study: str = MAIN, stack: str | None = None, harness: bool = True
    ) -> tuple[Series, ...]:
        """Series of one study, in the order in which tables list them."""
        wanted = stack or self.stack
        found = [
            series
            for series in self.series
            if series.study == study
            and series.stack == wanted
            and mode in (None, series.mode)
            and (harness or not series.is_harness)
        ]
        return tuple(sorted(found, key=_place))

    def find(self, system: str, mode: str) -> Series | None:
        """The main series of a system in a mode."""
        return next((series for series in self.select(mode=mode) if series.system == system), None)

    @classmethod
    def load(cls, results: Path) -> RunSet:
        """Read results/plan.json and the runs of its series.

        AnalysisError, naming the file, for what is absent, unreadable or at odds with itself. A series that
        failed or was not run stays, with its reason.
        """
        path = results / "plan.json"
        plan = Fields.read(path)
        items: dict[str, list[Fields]] = {}
        for item in plan.parts("series"):
            items.setdefault(item.text("repeats", item.text("id")), []).append(item)
        if not items:
            raise AnalysisError(f"{path}: key 'series': found none; allowed: at least one")
        config = plan.part("config")
        ahead = config.integer("read_ahead", 1)
        series = tuple(_series(results, identity, repeats, ahead) for identity, repeats in items.items())
        return cls(results, config, series, plan.texts("notes"))


def _place(series: Series) -> tuple[int, int, str, int]:
    known = ORDER.index(series.system) if series.system in ORDER else len(ORDER)
    return (series.is_harness, known, series.system, series.batch_size)


def _series(results: Path, identity: str, items: list[Fields], read_ahead: int) -> Series:
    first = items[0]
    system = first.text("system")
    batch = first.text("mode") != "single"
    repeats = tuple(sorted((_repeat(results, item) for item in items), key=lambda repeat: repeat.number))
    return Series(
        id=identity,
        system=system,
        title=_titled(first.text("title", system), repeats),
        mode="batch" if batch else "single",
        batch_size=first.integer("batch_size", 1),
        threads=first.integer("threads", 1),
        protocol=first.text("protocol"),
        stack=first.text("stack"),
        study=first.text("study", MAIN),
        repeats=repeats,
        # Plans of version 1 name it for the whole configuration.
        read_ahead=1 if batch else first.integer("read_ahead", read_ahead),
        cpus=first.maybe_integer("cpus"),
    )


def _titled(title: str, repeats: tuple[Repeat, ...]) -> str:
    """A system's title, with what sets it apart from the same system under the defaults."""
    levels = {run.manifest.system.durability_level for repeat in repeats for run in repeat.runs} - {DEFAULT_DURABILITY}
    words = [f"durability: {level}" for level in sorted(levels)]
    return f"{title} ({', '.join(words)})" if words and not any(word in title for word in words) else title


def _repeat(results: Path, item: Fields) -> Repeat:
    relative = PurePosixPath(item.text("directory"))
    # The plan names folders from the workspace's root; an archive's results may lie under another name.
    directory = (
        results.joinpath(*relative.parts[relative.parts.index("runs") :])
        if "runs" in relative.parts
        else (results / relative)
    )
    outcome = Fields.read(directory / "outcome.json")
    status = outcome.text("status")
    if status not in ("complete", "failed", "not-run"):
        raise AnalysisError(
            f"{directory / 'outcome.json'}: key 'status': found '{status}'; allowed: complete, failed, not-run"
        )
    identity = item.text("id")
    runs = tuple(read_run(directory, identity, number) for number in outcome.integers("runs"))
    if status == "complete" and not runs:
        raise AnalysisError(f"{directory / 'outcome.json'}: the series is complete, but 'runs' names none")
    return Repeat(
        id=identity,
        number=item.integer("repeat", 1),
        position=item.integer("position", 0),
        status=status,
        reason=outcome.maybe_text("reason"),
        runs=runs,
        attempts=tuple(Attempt.parse(each) for each in outcome.parts("attempts")),
        disturbed=tuple(_disturbed(directory, identity, each) for each in outcome.parts("disturbed")),
    )


def _disturbed(directory: Path, identity: str, f: Fields) -> Disturbed:
    number, attempt = f.integer("run"), f.integer("attempt")
    folder = directory / PurePosixPath(f.text("directory"))
    run = None
    if (folder / "run.json").is_file() and folder.resolve().is_relative_to(directory.resolve()):
        run = read_run(directory, identity, number, folder)
    return Disturbed(number, attempt, folder, f.texts("reasons"), run)
