"""Tables of the study: ages of events when they are seen, and whether each is present exactly once after kills."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from tidemark.analysis.words import Cell, Missing, attempt
from tidemark.results.tables.table import SYSTEM, Column, Table, Workshop
from tidemark.runs.run import Run
from tidemark.runs.runset import Series
from tidemark.studies.freshness.parts import killed, of, policy_of, runs_of, undisturbed
from tidemark.studies.freshness.quantities import (
    COMMITS,
    CPU,
    FILES,
    MADE_P50,
    MADE_P99,
    RATE,
    ROWS,
    SEEN_MAX,
    SEEN_P50,
    SEEN_P95,
    SEEN_P99,
    SLOPE,
    found,
    unfinished,
)
from tidemark.studies.freshness.settings import shape_of

UNEQUAL = (
    "Systems do not promise the same, and do not do the same work: Tidemark's consumers keep nothing but the table, "
    "and one process is killed with them; a pipeline keeps its own account of what it has read. Nothing here is ranked."
)
EXACT = "each event once"
SHOWN = (
    (RATE, "events"), (COMMITS, "commits"), (ROWS, "rows"), (SEEN_P50, "seen_p50"), (SEEN_P95, "seen_p95"),
    (SEEN_P99, "seen_p99"), (SEEN_MAX, "seen_max"), (MADE_P50, "committed_p50"), (MADE_P99, "committed_p99"),
    (SLOPE, "slope"), (CPU, "cpu"), (FILES, "files"),
)  # fmt: skip
HEAD = (
    SYSTEM, Column("policy", "Commits"), Column("rate", "Events due", "events/s"), Column("encoding", "Encoding"),
    Column("verdict", "Verdict"),
)  # fmt: skip
COLUMNS = (*HEAD, *(Column(key, each.title, each.unit, interval=True) for each, key in SHOWN))
KILLED = (
    *HEAD, Column("kills", "Kills"), Column("expected", "Events"), Column("missing", "Missing"),
    Column("doubled", "More than once"), Column("unexpected", "Of no event"),
    Column("again", "Started again, worst", "s"), Column("oldest", "Oldest when seen", "s"),
    Column("how", "How each is to be there once"),
)  # fmt: skip


def build(workshop: Workshop) -> Iterator[Table]:
    """Yield tables freshness and freshness-kills."""
    yield _ages(workshop)
    yield _kills(workshop)


def _ages(workshop: Workshop) -> Table:
    rows: list[list[Cell]] = []
    runs: list[Run] = []
    for series in undisturbed(workshop.run_set):
        runs += runs_of(series)
        values: list[Cell] = [
            attempt(each.unit, partial(of, workshop.measures, each, series)) if series.runs else None
            for each, _ in SHOWN
        ]
        rows.append([*_head(series), *values])
    notes = [
        "Events are sent at the moments of a schedule, whatever becomes of them; an age is counted from the schedule, "
        "also of an event that was sent late. A reader opens the table again and again and asks how many rows it has: "
        "the age of an event is that at the first answer that counts it. Its age at its commit is by the table's own "
        "history, whose clock stands some milliseconds before others can see the commit.",
        "Events: those due, by the time from the first one's moment until the last was seen. Growth of the lag: how "
        "much older the youngest event of a commit gets with each second, while events arrive; above 0 the table "
        "falls behind. CPU: of consumers or pipeline and of the table's servers, without broker, producer and reader. "
        "Files: data and metadata on the disk.",
        "Tidemark's consumers are processes that write through the table's own client, and commit at the given time "
        "after the first event that waits; pipelines read the topic themselves and commit at the given interval.",
        UNEQUAL,
    ]
    return workshop.table("freshness", "How old events are when they are seen", COLUMNS, rows, runs, notes)


def _kills(workshop: Workshop) -> Table:
    rows: list[list[Cell]] = []
    runs: list[Run] = []
    for series in killed(workshop.run_set):
        for run in series.runs:
            runs.append(run)
            oracle, told = run.manifest.oracle, found(run)
            rows.append(
                [
                    *_head(series),
                    len(told["kills"]),
                    oracle.expected,
                    oracle.missing,
                    oracle.duplicated,
                    oracle.unexpected,
                    max((float(kill["again_s"]) for kill in told["kills"]), default=None),
                    attempt("s", partial(workshop.measures.of_run, SEEN_MAX, run)),
                    told["exactly_once"],
                ]
            )
        if not series.runs:
            rows.append([*_head(series), *[None] * (len(KILLED) - len(HEAD))])
    notes = [
        "While events arrive, a consumer or the pipeline is killed (SIGKILL, all its processes) and started again at "
        "once; broker and table go on. Once all events are seen, or the wait has timed out, another client reads all "
        "ids: each must be there, once.",
        UNEQUAL,
    ]
    title = "Whether each event is there once after kills"
    return workshop.table("freshness-kills", title, KILLED, rows, runs, notes)


def _head(series: Series) -> list[Cell]:
    shape = shape_of(series.mode)
    verdict: Cell = Missing(series.missing())
    if series.runs:
        wrong = [run for run in series.runs if not run.manifest.oracle.verdict]
        words = [f"{'NOT DONE' if unfinished(run) else 'DOES NOT HOLD'}: {run.manifest.marks[0]}" for run in wrong]
        verdict = words[0] if words else EXACT
    return [series.title, policy_of(series), shape.rate, shape.encoding, verdict]
