"""Declarations for a client's release are true: its rules, and the capabilities and notes that depend on them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import deltalake
import pyarrow as pa
import pytest

from tidemark.errors import ProvisionError
from tidemark.systems import duckdb_client, releases
from tidemark.systems import lance as lance_client
from tidemark.systems import paimon as paimon_client
from tidemark.systems.base import Capability, System
from tidemark.systems.delta import table as delta_client
from tidemark.systems.delta.delta_duckdb import DeltaDuckDB
from tidemark.systems.delta.delta_rs import DeltaRs
from tidemark.systems.duckdb_table import DuckDBSystem
from tidemark.systems.ducklake.files import DuckLakeInlined
from tidemark.systems.ducklake.servers import DuckLake, DuckLakeInlinedPostgres
from tidemark.systems.ducklake.table import LOSES_SIGN
from tidemark.systems.iceberg import client as pyiceberg_client
from tidemark.systems.iceberg.iceberg_duckdb import IcebergDuckDB
from tidemark.systems.iceberg.iceberg_pyiceberg import IcebergPyIceberg
from tidemark.systems.registry import of_kind
from tidemark.systems.tables import TableSystem

from .trips import YELLOW, trips, with_column

OpenTable = Callable[..., Any]


CLIENTS = (
    duckdb_client.DUCKDB,
    pyiceberg_client.PYICEBERG,
    delta_client.DELTA_RS,
    lance_client.LANCE,
    paimon_client.PAIMON,
)


@pytest.mark.parametrize("client", CLIENTS, ids=lambda client: client.name)
def test_rules_of_a_release_hold_until_the_next_one_known(client: Any) -> None:
    name, known = client.name, client.releases
    assert [each.version for each in known] == sorted({each.version for each in known})
    with pytest.raises(ProvisionError, match=rf"{name} 0\.0\.1 is installed; {known[0]} is the oldest"):
        client.release("0.0.1")
    for each in known:
        major, minor, patch = each.version
        assert client.release(str(each)) is each
        assert client.remark(str(each)) is None
        between = f"{major}.{minor}.{patch + 1}rc1"
        assert client.release(between) is each
        assert f"{name} {between} is " in str(client.remark(between))
    assert client.release("99.0") is known[-1]
    assert client.remark("99.0") == (
        f"{name} 99.0 is newer than {known[-1]}, the newest known here, and used as {known[-1]} is"
    )


@pytest.mark.parametrize(
    "kind", [k for k in of_kind(TableSystem).values() if k.format != "none"], ids=lambda kind: kind.name
)
def test_unknown_newer_release_is_used_as_the_newest_known_and_reported(
    kind: type[System], open_table: OpenTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = open_table(kind).notes
    monkeypatch.setattr(releases, "version", lambda _: "99.0.0")
    notes = set(open_table(kind).notes)
    added = [note for note in notes if "99.0.0 is newer than" in note]
    assert bool(added) == bool(used_by(kind)) and all(
        f"used as {client.releases[-1]} is" in " ".join(added) for client in used_by(kind)
    )
    assert not [note for note in before if "newer than" in note]


def used_by(kind: type[System]) -> list[Any]:
    """Return the clients with releases that create, write and read a table of this kind."""
    found: list[Any] = [duckdb_client.DUCKDB] if issubclass(kind, DuckDBSystem) else []
    others: dict[str, Any] = {"Iceberg": pyiceberg_client.PYICEBERG, "Delta Lake": delta_client.DELTA_RS}
    others |= {"Lance": lance_client.LANCE, "Apache Paimon": paimon_client.PAIMON}
    return [*found, *([others[kind.format]] if kind.format in others else [])]


@pytest.mark.parametrize("client", [duckdb_client.DUCKDB, pyiceberg_client.PYICEBERG], ids=lambda client: client.name)
def test_settings_name_the_release_rules(client: Any, open_table: OpenTable) -> None:
    system = open_table(IcebergPyIceberg if client.name == "PyIceberg" else DuckLakeInlined)
    system.create(YELLOW)
    assert system.settings()[f"{client.name} release rules"] == str(client.release())


def overtake(system: Any) -> None:
    """Commit one row by another writer in a transaction that began before the row that `system` writes meanwhile."""
    late, early = trips(YELLOW, 1, 1), trips(YELLOW, 1)
    if isinstance(system, IcebergPyIceberg):
        table = system._load()
        system.write(early)
        table.append(late)
    elif isinstance(system, DeltaRs):
        table = system._load()
        system.write(early)
        deltalake.write_deltalake(table, late, mode="append")
    else:
        with system.open_reader() as reader:
            other = reader.attached()
            other.execute("BEGIN")
            other.register("late", late)
            other.execute(f"INSERT INTO {system.table} SELECT * FROM late")
            system.write(early)
            other.execute("COMMIT")


@pytest.mark.parametrize(
    "kind", [DuckLake, DuckLakeInlinedPostgres, IcebergPyIceberg, IcebergDuckDB, DeltaRs, DeltaDuckDB]
)
def test_overtaken_commit_is_retried_if_declared(kind: type[System], open_table: OpenTable) -> None:
    system = open_table(kind)
    system.create(YELLOW)
    if Capability.COMMIT_RETRY in system.capabilities:
        overtake(system)
        assert sorted(system.ids().to_pylist()) == [0, 1]
    else:
        with pytest.raises(Exception, match=r"(?i)conflict|has changed|requirement|already exists|commit"):
            overtake(system)
        assert system.ids().to_pylist() == [0]


def read_by_another(system: Any) -> list[int]:
    """Return the ids of the table, read by a client other than the one that wrote it."""
    location = str(system.context.directory / "table")
    if isinstance(system, IcebergDuckDB):
        found = system._load().scan().to_arrow()
    elif isinstance(system, DeltaDuckDB):
        found = deltalake.DeltaTable(location).to_pyarrow_table()
    else:
        extensions, source = (
            (("avro", "iceberg"), f"iceberg_scan('{system._load().metadata_location}')")
            if isinstance(system, IcebergPyIceberg)
            else (("delta",), f"delta_scan('{location}')")
        )
        with duckdb_client.connect(extensions) as connection:
            found = connection.sql(f"FROM {source}").to_arrow_table()
    return sorted(found.column("id").to_pylist())


@pytest.mark.parametrize("kind", [IcebergPyIceberg, IcebergDuckDB, DeltaRs, DeltaDuckDB])
def test_other_clients_read_the_table_if_declared(kind: type[System], open_table: OpenTable) -> None:
    system = open_table(kind)
    system.create(YELLOW)
    system.write(trips(YELLOW, 3))
    if Capability.READ_BY_OTHERS in system.capabilities:
        assert read_by_another(system) == [0, 1, 2]
    else:
        with pytest.raises(Exception, match=r"(?i)not found|no such file|size|parquet"):
            read_by_another(system)


@pytest.mark.parametrize("kind", [DuckLakeInlined, DuckLakeInlinedPostgres])
def test_inlined_zeros_keep_their_sign_unless_noted(kind: type[System], open_table: OpenTable) -> None:
    system = open_table(kind)
    system.create(YELLOW)
    system.write(with_column(trips(YELLOW, 1), "tip_amount", pa.array([-0.0])))
    assert system.inlined_rows() == 1
    (found,) = system.read().column("tip_amount").to_pylist()
    keeps = duckdb_client.DUCKDB.release().ducklake_keeps_negative_zero
    assert (math.copysign(1, found) < 0) == keeps == (LOSES_SIGN not in system.notes)
