"""Counts of single commits: how they are kept as JSON, and the differences of two of them in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import ClassVar, Self

import msgspec

from tidemark.errors import ConfigError, Incomparable

type Counted = Mapping[str, Mapping[str, int]]  # of one commit in one run, by source and name
type Range = tuple[int, int]  # the least and the most of all runs

CLIENT, SERVER = "the client", "the catalog's server"  # who asks
IN_SERIES = "round trips in series"
BYTES_DIFFER = 0.05  # share of the kept bytes; identifiers, times and paths in files compress to more or less


class Source(StrEnum):
    """Kind of count."""

    FILES = "files"
    BYTES = "bytes"
    CALLS = "file-system operations"
    SQL = "SQL"
    NETWORK = "network"
    SERVERS = f"network of {SERVER}"
    MEMORY = "memory"

    @property
    def is_exact(self) -> bool:
        """False if it varies from run to run, and is shown but not compared."""
        return self is not Source.MEMORY


@dataclass(frozen=True, slots=True)
class Step:
    """One round trip of a commit, by milliseconds from the commit's first one."""

    server: str
    asked: str  # the HTTP request, or the SQL statement; empty for other messages
    began_ms: float
    took_ms: float
    sent_bytes: int
    received_bytes: int
    by: str = CLIENT


class JsonFile:
    """Content of a JSON file: the fields of a dataclass. `called` names it in errors."""

    __slots__ = ()
    called: ClassVar[str]

    def to_json(self) -> str:
        return msgspec.json.format(msgspec.json.encode(self), indent=1).decode() + "\n"

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read what `to_json` returned; raise ConfigError, naming the file, if it is something else."""
        try:
            return msgspec.json.decode(path.read_bytes(), type=cls)
        except OSError as error:
            raise ConfigError(f"{path}: cannot be read: {error.strerror}") from error
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise ConfigError(f"{path}: cannot be read as {cls.called}: {error}") from error


@dataclass(frozen=True, slots=True)
class Anatomy(JsonFile):
    """Counts of the chosen commits of one system, each a range over the runs. A name without a count was not seen."""

    called: ClassVar[str] = "an anatomy"

    system: str
    title: str
    stack: str
    versions: dict[str, str]
    options: dict[str, bool | int | str | None]  # those that were given
    rows: int  # of a commit
    columns: int
    runs: int
    commits: dict[int, dict[str, dict[str, Range]]]  # by number of the commit, from 1
    not_counted: dict[str, str] = field(default_factory=dict)  # the reason, by source or by what it is
    steps: tuple[Step, ...] = ()  # of a commit after the last one that is counted: the quickest of several, untraced
    pipeline: dict[str, str] = field(default_factory=dict)  # the settings of a pipeline; empty if a client writes

    def differences(self, kept: Anatomy, called: str = "kept") -> Iterator[str]:
        """Yield in words each count that differs from that of `kept`; raise Incomparable if they cannot be compared.

        Two counts differ if their ranges do not overlap; bytes may besides differ by 5 %. Sources that only one of both
        counted are left out, and what is not exact.
        """
        self._refuse_another(kept)
        sources = [source for source in Source if source.is_exact and source not in self.left_out(kept)]
        for number, counts in self.commits.items():
            for source in sources:
                found, before = counts.get(source, {}), kept.commits[number].get(source, {})
                for name in sorted({*found, *before}):
                    now, then = found.get(name, (0, 0)), before.get(name, (0, 0))
                    room = BYTES_DIFFER * then[1] if name.startswith("bytes ") else 0
                    if now[0] > then[1] + room or now[1] < then[0] - room:
                        yield f"{name}: {shown(now)} a commit, {called} {shown(then)} (commit {number:,})"

    def left_out(self, kept: Anatomy) -> dict[str, str]:
        """Return the sources that only one of both counted, each with the reason."""
        both = {*self.not_counted} & {*kept.not_counted}
        reasons = {**{name: f"kept without: {why}" for name, why in kept.not_counted.items()}, **self.not_counted}
        return {name: why for name, why in reasons.items() if name not in both}

    def _refuse_another(self, kept: Anatomy) -> None:
        for key in ("system", "options", "rows", "columns"):
            found, before = getattr(self, key), getattr(kept, key)
            if found != before:
                raise Incomparable(f"found {key} {found}, kept {before}: counts of different work are not compared")
        if missing := [number for number in self.commits if number not in kept.commits]:
            raise Incomparable(
                f"found commits {listed(self.commits)}, kept {listed(kept.commits)}: commit {missing[0]:,} was not kept"
            )


def duration_ms(steps: Sequence[Step]) -> float:
    """Return the time from a commit's first request to its last answer."""
    return max((each.began_ms + each.took_ms for each in steps), default=0.0)


def shown(count: Range) -> str:
    return f"{count[0]:,}" if count[0] == count[1] else f"{count[0]:,}-{count[1]:,}"


def listed(numbers: Mapping[int, object]) -> str:
    return ", ".join(f"{number:,}" for number in numbers)


def merged(runs: Sequence[Counted]) -> dict[str, dict[str, Range]]:
    """Return the range of each count over several runs of the same commit; what a run did not see counts as 0."""
    found: dict[str, dict[str, Range]] = {}
    for source in dict.fromkeys(source for run in runs for source in run):
        counted = [run.get(source, {}) for run in runs]
        names = dict.fromkeys(name for each in counted for name in each)
        values = {name: [each.get(name, 0) for each in counted] for name in names}
        found[source] = {name: (min(each), max(each)) for name, each in values.items()}
    return found
