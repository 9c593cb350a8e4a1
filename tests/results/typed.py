"""Typed numbers of publications as evidence in place of runs: a claim's measure then gives the published value."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from tidemark.analysis.metrics import Metric, NotAvailable
from tidemark.analysis.statistics import BootstrapEstimate, known
from tidemark.results.claims.claims import Claim
from tidemark.results.publication import the_row
from tidemark.runs.spec import SINGLE
from tidemark.studies.catalogs import published as catalogs
from tidemark.studies.catalogs.record import USERS
from tidemark.studies.deltars import published as deltars
from tidemark.studies.ingest import published as ingest
from tidemark.studies.lhbench import published as lhbench
from tidemark.studies.lhbench.script import SELECTIVE
from tidemark.studies.streams import published as streams

MS = 1e-3  # of a second
MINUTES_OF_Q90 = {"delta-on-spark": 6.5, "hudi-on-spark": 18.8, "iceberg-on-spark": 18.6}  # section 3.2, of Web Sales
GB_OF_Q90 = {"delta-on-spark": 138, "hudi-on-spark": 186}
MB_OF_A_PARTITION = {"delta-on-spark": 128, "hudi-on-spark": 22 * 8.3}
OF_FIGURE_1 = {"delta-on-spark": "Delta", "hudi-on-spark": "Hudi", "iceberg-on-spark": "Iceberg"}
OF_FIGURE_2 = {
    "delta-on-spark-cow": "Delta 2.2.0",
    "hudi-on-spark-cow": "Hudi CoW 0.12.0",
    "hudi-on-spark": "Hudi MoR 0.12.0",
    "iceberg-on-spark-cow": "Iceberg CoW 1.1.0",
    "iceberg-on-spark": "Iceberg MoR 0.14.0",  # the paper compares two releases
    "iceberg-on-spark-before-cow": "Iceberg CoW 1.1.0",
    "iceberg-on-spark-before": "Iceberg MoR 1.1.0",
    "iceberg-on-spark-0p14": "Iceberg MoR 0.14.0",
}
LAYERS = {"nessie-mongo": catalogs.DOCUMENT, "nessie-jdbc-postgres": catalogs.RELATIONAL}
SEQUENTIAL_LAYER, CONCURRENT_LAYER = catalogs.RELATIONAL, catalogs.DOCUMENT  # the one that has a time under load


@dataclass(frozen=True, slots=True)
class Typed:
    """Evidence for the measure of one claim from typed numbers; numbers that were never typed raise NotAvailable."""

    claim: Claim
    find: Callable[[Claim, str, str, str], float]

    def hot(self, quantity: Metric, system: str, mode: str) -> BootstrapEstimate:
        try:
            found = self.find(self.claim, quantity.name, system, mode)
        except (KeyError, TypeError):
            raise NotAvailable(f"{quantity.name} of {system} in {mode} is not typed") from None
        return known(found, log=found > 0)

    value = hot  # of a part of LHBench

    def at_files(self, quantity: Metric, system: str, files: int) -> BootstrapEstimate:
        return self.hot(quantity, system, str(files))

    def along_files(self, quantity: Metric, system: str) -> list[tuple[float, BootstrapEstimate]]:
        axis = sorted({each.x for each in lhbench.numbers() if each.figure == 4 and each.x is not None})
        return [(files, self.at_files(quantity, system, files)) for files in axis if self._has(quantity, system, files)]

    def _has(self, quantity: Metric, system: str, files: int) -> bool:
        try:
            return bool(self.at_files(quantity, system, files))
        except NotAvailable:
            return False

    def merge(self, _system: str, _mode: str, _like: str) -> BootstrapEstimate:
        return known(streams.MERGE_S / streams.EVENTS_OF_MERGE * 1e6)

    def __getattr__(self, name: str) -> object:
        raise NotAvailable(f"no {name} is typed")


def of_streams(_claim: Claim, quantity: str, system: str, mode: str) -> float:
    first_hot = 1
    flush_s = streams.PRINTED.flush_s[mode][first_hot]
    # "roughly 30,000 events" one by one; in batches those of the bar
    flushed = streams.EVENTS_OF_MERGE if mode == SINGLE else streams.EVENTS[mode]["ducklake-inlined"][first_hot]
    return {
        "disk median": lambda: streams.PRINTED.disk_mb[mode][system].median,
        "disk IQR": lambda: streams.PRINTED.disk_mb[mode][system].iqr,
        "write median": lambda: streams.PRINTED.write_ms[mode][system].median,
        "write IQR": lambda: streams.PRINTED.write_ms[mode][system].iqr,
        "data files": lambda: streams.PRINTED.files[mode][system].data_files,
        "data bytes": lambda: streams.PRINTED.files[mode][system].data_mb,
        "metadata bytes": lambda: streams.PRINTED.files[mode][system].metadata_mb,
        "flush": lambda: flush_s,
        "flush per row": lambda: flush_s / flushed * 1e6,
    }[quantity]()


def of_deltars(_claim: Claim, quantity: str, system: str, mode: str) -> float:
    data, cores = mode.rsplit("-", 1)
    operation = {"upload share": deltars.UPLOAD}.get(quantity, quantity.removesuffix(" mean"))
    seconds = deltars.seconds(operation, deltars.HEIRS[system], data, int(cores))
    if quantity == "upload share":
        return 100 * seconds / deltars.seconds(deltars.WRITE, deltars.HEIRS[system], data, int(cores))
    return seconds


def of_catalogs(claim: Claim, quantity: str, system: str, mode: str) -> float:
    act, what = quantity.rsplit(" ", 1)
    under_load = claim.measure.name == "users-ratio"
    layer = LAYERS.get(system, CONCURRENT_LAYER if under_load else SEQUENTIAL_LAYER)
    case, query = ("Dataset", act.title()) if act.startswith("create") else (f"{act[5:7]}/", act.split()[-1].title())
    alone = mode == f"{USERS}1"
    row = catalogs.row(catalogs.SEQUENTIAL if alone else catalogs.CONCURRENT, case, layer, query)
    users = 1 if alone else catalogs.printed_users(query)
    return {"mean": row.mean_ms, "median": row.mean_ms, "rate": users / row.mean_ms}[what]


def of_ingest(claim: Claim, quantity: str, _system: str, mode: str) -> float:
    table = 3 if "Remaining" in claim.section else 2 if "Batched" in claim.section else 1
    shaped = re.fullmatch(r"(direct|staged|bundled)-(\d+)x(\d+)", "direct-500x8" if mode == "one-8" else mode)
    if shaped is None or (claim.measure.name, quantity) == ("value", "requests a file"):
        raise KeyError(mode)
    policy, rows, workers = shaped[1], int(shaped[2]), int(shaped[3])
    cell = ingest.cell(table, policy, rows, workers)
    # The page prints files per ten seconds, not per number of requests.
    of_files = None if cell.files is None else 1 / cell.files
    found = {"rows": cell.rows_per_s, "commit p99": cell.p99_ms, "errors": cell.errors, "requests a file": of_files}
    return float(found[quantity])  # type: ignore[arg-type]  # TypeError where the page prints none


def _printed(figure: int, panel: str, system: str, x: int | None = None) -> lhbench.Printed:
    return the_row(lhbench.numbers(), figure=figure, panel=panel, system=system, x=x)


def of_lhbench(_claim: Claim, quantity: str, system: str, part: str) -> float:
    base = system.removesuffix("-cow").removesuffix("-before")
    if part == "load":
        apart = {"bytes": MB_OF_A_PARTITION, "scans of q90": MINUTES_OF_Q90, "scanned by q90": GB_OF_Q90}
        if quantity in apart:
            return apart[quantity][base]
        return _printed(1, {"queries": "total"}.get(quantity, quantity), OF_FIGURE_1[base]).value
    if part == "refresh":
        return _printed(2, {"load": "create"}.get(quantity, quantity), OF_FIGURE_2[system]).value
    kind = {"startup of selective": "startup", "answer to selective": "total"}[quantity]
    of_queries = (_printed(4, f"{query} {kind}", OF_FIGURE_1[base], int(part)) for query in SELECTIVE)
    return sum(MS * each.value for each in of_queries)


FIND: Mapping[str, Callable[[Claim, str, str, str], float]] = {
    "streams": of_streams,
    "deltars": of_deltars,
    "catalogs": of_catalogs,
    "ingest": of_ingest,
    "lhbench": of_lhbench,
}


def typed_value(study: str, claim: Claim) -> float | None:
    """Return the value of a claim from the typed numbers, or None if they do not give it."""
    given = dict(claim.measure.arguments)
    if study not in FIND or (claim.needs_no_run and claim.measure.name != "printed-gain"):
        return None  # a publication's words, which its numbers may contradict
    evidence = Typed(claim, FIND[study])
    try:
        if claim.measure.name == "not-here" and "layer" in given:
            row = catalogs.row(given["mode"], given["case"], given["layer"], given["query"])
            return row.mean_ms if row.succeeded else 0.0
        if claim.measure.name == "beside":
            return evidence.hot(given["quantity"], given["system"], given["mode"]).value
        return claim.measure(evidence)[0].value  # type: ignore[arg-type]  # used in place of runs
    except NotAvailable:
        return None
