"""The tables of docs/anatomy.md, from the kept counts: parts of a commit, and its time at a distance; its sequence."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from tidemark.analysis.formatting import Cell, estimate_text, listed, number
from tidemark.analysis.statistics import Estimate
from tidemark.machine.strace import SYNCS
from tidemark.results.tables.table import markdown_grid
from tidemark.runs.anatomy import BYTES_DIFFER, IN_SERIES, Anatomy, Range, Source, shown
from tidemark.services.seaweedfs import SeaweedFS

# Of the reference results: NAME.json of the stack `thesis`, a folder for each other stack, and `s3` with files there.
FOLDER = "anatomy"
BY_COLUMNS = "columns"  # folder with NAME-COLUMNS.json
IN_STORE = {"storage": "s3"}  # options
MARK = "<!-- anatomy: './tidemark artifact' writes this -->"
COLUMNS_MARK = "<!-- anatomy by columns: './tidemark artifact' writes this -->"
DISTANCES = "<!-- anatomy at a distance: './tidemark artifact' writes this -->"
SEQUENCES = "<!-- anatomy in sequence: './tidemark artifact' writes this -->"
PICTURE = "docs/images/anatomy.svg"
EMPTY = "There are none in `reference/`."
YOUNG = 10  # number of the commit that is shown, beside the last one
APART = (*SYNCS, "program started", "bytes written")  # calls that are in columns of their own, or in none
NONE = "–"  # nothing of that kind takes part

type Wanted = Callable[[str], bool]

COLUMNS: tuple[tuple[str, Source, Wanted], ...] = (
    ("Files", Source.FILES, bool),
    ("kB of files", Source.BYTES, bool),
    ("File operations", Source.CALLS, lambda name: not name.startswith(APART)),
    ("Syncs", Source.CALLS, lambda name: name.startswith(SYNCS)),
    ("Programs started", Source.CALLS, lambda name: name.startswith("program started")),
    ("SQL statements", Source.SQL, lambda name: name == "SQL statements"),
    ("SQL transactions", Source.SQL, lambda name: name == "SQL transactions"),
    ("HTTP requests", Source.NETWORK, lambda name: " requests to " in name),
    ("Round trips of the catalog's server", Source.SERVERS, lambda name: name.startswith("round trips to")),
    ("Round trips in series", Source.NETWORK, lambda name: name == IN_SERIES),
)
COUNTS = tuple(title for title, _, _ in COLUMNS)


def kept_counts(kept: Path) -> list[Anatomy]:
    """Return all counts of trips in `kept`, the reference results, by system, the stack `thesis` first.

    Raise ConfigError, naming the file, if counts cannot be read.
    """
    places = sorted((kept / FOLDER).rglob("*.json"), key=lambda path: (path.stem, path.parent.name != FOLDER))
    return [Anatomy.read(path) for path in places if path.parent.name != BY_COLUMNS]


def kept_by_columns(kept: Path) -> list[Anatomy]:
    """Return the counts of rows with other numbers of columns, by system and columns; raise as `kept_counts` does."""
    found = [Anatomy.read(path) for path in (kept / FOLDER / BY_COLUMNS).glob("*.json")]
    return sorted(found, key=lambda each: (each.system, each.columns))


def anatomy_table(counts: Sequence[Anatomy]) -> Iterator[str]:
    """Yield the lines of the table of those counts whose systems have no options, by system and stack."""
    rows = [[_named(found), found.stack, *cells(found)] for found in counts if not found.options]
    yield from markdown_grid(["System", "Stack", *COUNTS], rows).splitlines() if rows else [EMPTY]


def columns_table(counts: Sequence[Anatomy]) -> Iterator[str]:
    """Yield the lines of the table of `counts`, each with its number of columns and its last commit."""
    rows = [[found.title, str(found.columns), f"{max(found.commits):,}", *cells(found)] for found in counts]
    heads = ["System", "Columns", "Last commit", *COUNTS]
    yield from markdown_grid(heads, rows).splitlines() if rows else [EMPTY]


def distance_table(counts: Sequence[Anatomy], measured: Sequence[Mapping[str, Cell]]) -> Iterator[str]:
    """Yield the lines of the table of commits whose files are in a store at a distance, predicted and measured.

    `measured` are the rows of a table with the columns `system`, `rtt` (ms to the store) and `commit_p50` (ms).
    Predicted is the measured commit at 0 ms and, for each round trip in series to the store, the distance.
    """
    medians = {(row["system"], row["rtt"]): row["commit_p50"] for row in measured}
    rows = []
    for found in (each for each in counts if each.options == IN_STORE):
        network = found.commits[YOUNG][Source.NETWORK]
        trips = network.get(f"{IN_SERIES} to {SeaweedFS.title}", network[IN_SERIES])
        own = _sum(found.commits[YOUNG].get(Source.SERVERS, {}), _is_to_store)
        near = medians.get((found.title, 0))
        for (system, rtt), far in medians.items():
            if system != found.title or not isinstance(rtt, int) or rtt == 0:
                continue
            if isinstance(near, Estimate) and isinstance(far, Estimate):
                predicted = near.value + rtt * sum(trips) / 2
                error = 100 * (predicted / far.value - 1)
                said = f"{number(predicted, 3)} ms", estimate_text(far), f"{error:+.0f} %".replace("-", "−")
                rows.append([found.title, shown(trips), shown(own), f"{rtt} ms", *said])
    heads = ("System", "Round trips in series to the store", "Of the catalog's server", "Distance")
    yield from markdown_grid([*heads, "Predicted", "Measured", "Error"], rows).splitlines() if rows else [EMPTY]


def in_sequence(counts: Sequence[Anatomy]) -> list[Anatomy]:
    """Return for each system the first counts with the steps of a commit: those of no options, if they have them."""
    found: dict[str, Anatomy] = {}
    for each in sorted(counts, key=lambda each: bool(each.options)):
        if each.steps:
            found.setdefault(each.system, each)
    return list(found.values())


def sequence_lines(counts: Sequence[Anatomy]) -> Iterator[str]:
    """Yield the picture's place in the page, and which systems ask no server."""
    drawn = in_sequence(counts)
    if not drawn:
        yield EMPTY
        return
    titles = [each.title for each in drawn]
    yield f"![What one commit of {listed(titles)} asks its servers, in order](images/{Path(PICTURE).name})"
    if others := list(dict.fromkeys(each.title for each in counts if each.title not in titles and not each.pipeline)):
        yield from ("", f"No server is asked by {listed(others)}, which keep files and catalog on this machine.")


def _is_to_store(name: str) -> bool:
    return name.startswith(f"round trips to {SeaweedFS.title} ")


def cells(found: Anatomy) -> list[str]:
    """Return the counts of COUNTS as text."""
    return [_cell(found, title, source, wanted) for title, source, wanted in COLUMNS]


def _named(found: Anatomy) -> str:
    return f"{found.title}, a pipeline" if found.pipeline else found.title


def _cell(found: Anatomy, title: str, source: Source, wanted: Wanted) -> str:
    """Return the sum of the wanted counts at commit YOUNG, and at the last if that differs; a dash if not counted."""
    if {source, title.lower()} & found.not_counted.keys():
        return NONE
    young, old = (_sum(found.commits[number].get(source, {}), wanted) for number in (YOUNG, max(found.commits)))
    room = BYTES_DIFFER * young[1] if source is Source.BYTES else 0
    is_same = young[0] - room <= old[1] and old[0] <= young[1] + room
    said = _kilobytes if source is Source.BYTES else shown
    return said(young) if is_same else f"{said(young)} → {said(old)}"


def _kilobytes(count: Range) -> str:
    return number(sum(count) / 2 / 1000, 2)


def _sum(counts: dict[str, Range], wanted: Wanted) -> Range:
    chosen = [count for name, count in counts.items() if wanted(name)]
    return sum(least for least, _ in chosen), sum(most for _, most in chosen)
