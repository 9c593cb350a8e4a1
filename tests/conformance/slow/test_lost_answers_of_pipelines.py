"""Commits of pipelines whose answer is lost: each event is there once afterwards, or the table is broken."""

from __future__ import annotations

import shutil
from contextlib import ExitStack
from pathlib import Path

import pytest

from tidemark.config import ServicesConfig
from tidemark.errors import ServiceError, SystemFailure
from tidemark.measure.anatomy.writers import pipeline
from tidemark.paths import Workspace, private_directory
from tidemark.services.fault_proxy import AFTER, BEFORE, STATUS, TWICE, HttpFaults
from tidemark.services.http import keep_loopback_direct
from tidemark.services.iceberg.rest import IcebergRest
from tidemark.services.kafka import Kafka
from tidemark.services.servers import Servers, in_order, prepared
from tidemark.studies.ingest.parts import request_of
from tidemark.systems.base import Context, Variant
from tidemark.systems.registry import registry
from tidemark.systems.sinks import StreamingSink

ONCE, BROKEN = "each event is there once", "no commit follows, and the table cannot be read"
AGAIN = ", after the stream has ended and was started again"
ROWS = 10  # of a commit


@pytest.mark.long(reason="an engine, and a new table for each fault: two to six minutes for each pipeline")
@pytest.mark.parametrize(
    ("name", "cut", "delivered_twice"),
    [
        ("kafka-connect-iceberg", ONCE, BROKEN),
        ("flink-iceberg", ONCE, ONCE),
        ("spark-iceberg", f"{ONCE}{AGAIN}", ONCE),
    ],
)
def test_events_after_a_commit_without_its_answer(
    name: str, cut: str, delivered_twice: str, workspace: Workspace
) -> None:
    keep_loopback_direct()
    kind = registry()[name]
    assert issubclass(kind, StreamingSink)
    variant = Variant(name, kind, kind.for_single_events(kind.Options()))
    work = private_directory(workspace.work / "lost-answers")
    with prepared(in_order((*variant.needs, Kafka)), workspace, work, ServicesConfig()) as servers:
        servers.start()
        found = {
            fault: outcome(fault, variant, servers, private_directory(work / fault))
            for fault in (AFTER, BEFORE, STATUS, TWICE)
        }
    shutil.rmtree(work)
    assert found == {AFTER: cut, BEFORE: cut, STATUS: ONCE, TWICE: delivered_twice}


def outcome(fault: str, variant: Variant, servers: Servers, folder: Path) -> str:
    """Return what is in a new table after three commits, of which the second one was hit by `fault`."""
    catalog = servers.by_class[IcebergRest]
    servers.by_class[variant.needs[0]].restart()  # engines keep the address of a catalog
    with ExitStack() as stack:
        faults = stack.enter_context(HttpFaults(catalog.host_and_port()[1], request_of(IcebergRest)))
        services = {**servers.by_class, IcebergRest: catalog.by_way_of(faults.port)}
        context = Context(private_directory(folder / "table").resolve(), services, rows_per_write=ROWS)
        found = stack.enter_context(pipeline(variant, context, servers.by_class, 21, folder, None))
        found.write(1)
        faults.hit_next(fault)
        again = ""
        try:
            found.write(1)
        except ServiceError:  # its stream has ended
            again = AGAIN
            found._system.kill()
            found._system.again()
            found.await_commit(2)
        assert [hit.fault for hit in faults.take()] == [fault]
        try:
            found.write(1)
        except SystemFailure as error:
            assert "made no commit within" in str(error)
            with pytest.raises(Exception, match="No such file"):
                found._table.ids()
            return BROKEN
        return found.wrong() or f"{ONCE}{again}"
