"""Tables that compare the paper's figures with Tidemark's results as ratios, and the paper's text with its figures."""

from __future__ import annotations

from functools import partial

from tidemark.analysis.formatting import Cell, MissingCell, attempt
from tidemark.analysis.metrics import Metric
from tidemark.analysis.statistics import BootstrapEstimate
from tidemark.results.tables.table import Column, Table, TableBuilder, notes_of, tables_by
from tidemark.studies.lhbench import published
from tidemark.studies.lhbench.claims import LakeClaimData, ratio
from tidemark.studies.lhbench.metrics import FOUR, LOADING, MERGING, QUERIES_AFTER, TOTAL
from tidemark.studies.lhbench.published import printed, printed_over, reading
from tidemark.studies.lhbench.settings import LOAD, REFRESH

NOTES = notes_of(__file__)
DELTA = "delta-on-spark-cow"  # copies files on merge, as the paper's Delta did
# PANELS: panels of figures 1 and 2, the measured quantity, its part. IN_PLACE: Tidemark's system for each of theirs.
PANELS: tuple[tuple[int, str, Metric, str], ...] = (
    (1, "load", LOADING, LOAD),
    (1, "total", TOTAL, LOAD),
    *((1, quantity.name, quantity, LOAD) for quantity in FOUR),
    (2, "create", LOADING, REFRESH),
    (2, "queries before", TOTAL, REFRESH),
    (2, "merge", MERGING, REFRESH),
    (2, "queries after", QUERIES_AFTER, REFRESH),
)
IN_PLACE = {
    1: {published.HUDI: "hudi-on-spark-cow", published.ICEBERG: "iceberg-on-spark-cow"},
    2: {
        "Hudi CoW 0.12.0": "hudi-on-spark-cow",
        "Hudi MoR 0.12.0": "hudi-on-spark",
        "Iceberg CoW 1.1.0": "iceberg-on-spark-cow",
        "Iceberg MoR 1.1.0": "iceberg-on-spark",
        "Iceberg MoR 0.14.0": "iceberg-on-spark",
    },
}
BASE = {1: published.DELTA, 2: "Delta 2.2.0"}
# The paper's releases on the paper's Spark; DELTA_BEFORE is the baseline for them. Its Hudi release is not available.
DELTA_BEFORE = "delta-on-spark-before"
AS_THEN = {
    published.ICEBERG: "iceberg-on-spark-before-cow",
    "Iceberg CoW 1.1.0": "iceberg-on-spark-before-cow",
    "Iceberg MoR 1.1.0": "iceberg-on-spark-before",
    "Iceberg MoR 0.14.0": "iceberg-on-spark-0p14",
}
NO_HUDI = "Hudi 0.12.0 is in no package registry"


def _beside(builder: TableBuilder) -> Table:
    claim_data = LakeClaimData(builder.measures)
    rows: list[list[Cell]] = []
    for figure, panel, quantity, part in PANELS:
        for theirs, ours in IN_PLACE[figure].items():
            told = printed_over(figure, panel, theirs, BASE[figure]).estimate("x")
            now = attempt("x", partial(ratio, claim_data, quantity, ours, DELTA, part))
            then: Cell = MissingCell(NO_HUDI)
            if theirs in AS_THEN:
                then = attempt("x", partial(ratio, claim_data, quantity, AS_THEN[theirs], DELTA_BEFORE, part))
            rows.append([figure, panel, theirs, told, ours, now, then])
    columns = (
        Column("figure", "Figure"), Column("panel", "Panel"), Column("theirs", "The paper's system"),
        Column("printed", "Over Delta, printed", "x", interval=True), Column("ours", "Ours"),
        Column("measured", "Over Delta, measured", "x", interval=True),
        Column("then", "Over Delta, the paper's releases", "x", interval=True),
    )  # fmt: skip
    notes = NOTES("lhb-published", delta=DELTA, delta_before=DELTA_BEFORE)
    title = "Figures 1 and 2 of the paper, with Tidemark's values"
    return builder.table("lhb-published", title, columns, rows, claim_data.runs, notes)


def _contradictions(builder: TableBuilder) -> Table:
    """Return a table that checks the paper's sentences against its own figures."""
    at_files = {
        panel: printed_over(4, panel, published.ICEBERG, published.DELTA, 200_000)
        for panel in ("limit startup", "limit total", "partition total", "value total")
    }
    start = at_files.pop("limit startup")
    merges = {x: printed_over(3, "merge", published.COPY, published.IN_READ, x) for x in (70_000, 7_000_000)}
    hudi = ("Hudi MoR 0.12.0", "Hudi CoW 0.12.0")
    cause = printed_over(2, "queries after", *hudi).ratio(printed_over(2, "queries before", *hudi))
    tenth = {
        mode: printed(2, "merge 10", f"Hudi {mode} 0.12.0").ratio(printed(2, "merge", f"Hudi {mode} 0.12.0"))
        for mode in ("MoR", "CoW")
    }
    releases = printed(2, "merge", "Iceberg CoW 1.1.0").ratio(printed(2, "merge", "Iceberg MoR 0.14.0"))
    lines: list[tuple[str, str, BootstrapEstimate, str]] = [
        ('"7-12× for a 200K file table"', "startup, one row", start, "the range is that of startup times"),
        *(
            ('"7-12× for a 200K file table"', f"total, filter: {panel.split()[0]}", ratio, "what a user waits for")
            for panel, ratio in at_files.items()
        ),
        ('"1.48× faster at the largest merge configuration"', "its bars", merges[7_000_000],
         "more than the sentence states"),
        ('"consistently lower than that of Iceberg CoW except for the 0.0001% merge configuration"',
         "its bars at the second smallest", merges[70_000],
         "below 1: copying files is faster there as well"),
        ('"3.2× slower queries post-merge"', "slower after than before", cause,
         "near 1: they were so slow at the load"),
        ('"Hudi ran compaction in merge iteration 10"', "tenth merge over the others, merging on read", tenth["MoR"],
         "as it says: compaction is part of that merge"),
        ('"Hudi ran compaction in merge iteration 10"', "tenth merge over the others, copying files", tenth["CoW"],
         "copying leaves nothing to compact: something else made it longer"),
        ('"1.4× faster than CoW"', "Iceberg CoW 1.1.0 over MoR 0.14.0", releases, "two releases, not two modes"),
    ]  # fmt: skip
    rows: list[list[Cell]] = [[words, what, ratio.estimate("x"), "x", means] for words, what, ratio, means in lines]
    for factor in (1, published.LABELLED):
        found = reading(factor)
        label = "as labelled" if factor == 1 else f"a {factor}th of the labels"
        shares = ", ".join(f"{100 * share:.1f} %" for share in found.shares)
        rows.append([
            'Figure 3: "Rows Updated"', f"{label}: files touched {shares}; worst miss of a line through its times",
            100 * found.worst, "%", f"{found.fixed_s:.0f} s + {found.whole_s:.0f} s x share of files",
        ])  # fmt: skip
    columns = (
        Column("sentence", "The paper"), Column("computed", "Computed from its figures"),
        Column("value", "Value", interval=True), Column("unit", "Unit"), Column("meaning", "What follows"),
    )  # fmt: skip
    title = "The paper's statements, compared with its own figures"
    return builder.table("lhb-contradictions", title, columns, rows, (), NOTES("lhb-contradictions"))


build = tables_by(_beside, _contradictions)
