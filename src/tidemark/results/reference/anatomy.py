"""The table of docs/anatomy.md: what one commit of each system consists of, from the kept counts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from tidemark.analysis.formatting import number
from tidemark.machine.strace import SYNCS
from tidemark.results.tables.table import markdown_grid
from tidemark.runs.anatomy import BYTES_DIFFER, Anatomy, Range, Source, shown

FOLDER = "anatomy"  # of the reference results: NAME.json of the stack `thesis`, and a folder for each other stack
MARK = "<!-- anatomy: './tidemark artifact' writes this -->"
YOUNG, OLD = 10, 100  # numbers of the commits that are shown
APART = (*SYNCS, "program started", "bytes written")  # calls that are in columns of their own, or in none

type Wanted = Callable[[str], bool]

COLUMNS: tuple[tuple[str, Source, Wanted], ...] = (
    ("Files", Source.FILES, bool),
    ("kB of them", Source.BYTES, bool),
    ("File operations", Source.CALLS, lambda name: not name.startswith(APART)),
    ("Syncs", Source.CALLS, lambda name: name.startswith(SYNCS)),
    ("Programs started", Source.CALLS, lambda name: name.startswith("program started")),
    ("SQL statements", Source.SQL, lambda name: name == "SQL statements"),
    ("SQL transactions", Source.SQL, lambda name: name == "SQL transactions"),
    ("HTTP requests", Source.NETWORK, lambda name: " requests to " in name),
    ("Round trips in series", Source.NETWORK, lambda name: name == "round trips in series"),
)


def anatomy_table(kept: Path) -> Iterator[str]:
    """Yield the lines of the table of all counts in `kept`, the reference results, by system and stack.

    Raise ConfigError, naming the file, if counts cannot be read.
    """
    places = sorted((kept / FOLDER).rglob("*.json"), key=lambda path: (path.stem, path.parent.name != FOLDER))
    rows = [_row(Anatomy.read(path)) for path in places]
    if not rows:
        yield "There are none in `reference/`."
        return
    yield from markdown_grid(["System", "Stack", *(title for title, _, _ in COLUMNS)], rows).splitlines()


def _row(found: Anatomy) -> list[str]:
    return [found.title, found.stack, *(_cell(found, source, wanted) for _, source, wanted in COLUMNS)]


def _cell(found: Anatomy, source: Source, wanted: Wanted) -> str:
    """Return the sum of the wanted counts at commit YOUNG, and at OLD if that differs; a dash if none is counted."""
    if source in found.not_counted:
        return "–"
    young, old = (_sum(found.commits[number].get(source, {}), wanted) for number in (YOUNG, OLD))
    room = BYTES_DIFFER * young[1] if source is Source.BYTES else 0
    is_same = young[0] - room <= old[1] and old[0] <= young[1] + room
    said = _kilobytes if source is Source.BYTES else shown
    return said(young) if is_same else f"{said(young)} → {said(old)}"


def _kilobytes(count: Range) -> str:
    return number(sum(count) / 2 / 1000, 2)


def _sum(counts: dict[str, Range], wanted: Wanted) -> Range:
    chosen = [count for name, count in counts.items() if wanted(name)]
    return sum(least for least, _ in chosen), sum(most for _, most in chosen)
