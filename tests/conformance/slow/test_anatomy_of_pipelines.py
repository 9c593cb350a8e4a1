"""Counts of a pipeline's commits: one more request and one more file are seen in the commit that has them."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.conformance.planted import OneMoreInTheThird

from tidemark.machine.strace import why_not
from tidemark.measure.anatomy.session import take_apart
from tidemark.paths import Workspace
from tidemark.runs.anatomy import IN_SERIES, Anatomy, Source
from tidemark.services.iceberg.rest import IcebergRest
from tidemark.systems.base import Variant

PLAIN, MORE = 2, 3  # commits


@pytest.mark.long(reason="a minute in which nothing else may run; test_anatomy.py plants what other clients do")
@pytest.mark.alone(reason="a pipeline commits by its clock: on a busy machine some batches of events get one commit")
def test_one_more_request_and_file_of_kafka_connect_are_seen(workspace: Workspace) -> None:
    kind = OneMoreInTheThird
    variant = Variant(kind.name, kind, kind.Options(), kind.title)
    found = take_apart(variant, {}, workspace, "thesis", [PLAIN, MORE], 1, 1)
    plain, more = found.commits[PLAIN], found.commits[MORE]
    kinds = ("data", "manifest", "manifest list", "metadata")
    assert {name: plain[Source.FILES][f"{name} files"] for name in kinds} == dict.fromkeys(kinds, (1, 1))
    assert (
        plain[Source.SQL]["SQL statements"]
        == (plain[Source.SERVERS]["round trips to PostgreSQL by the catalog's server"])
    ), "each statement is one"
    if why_not() is None:
        assert plain[Source.CALLS]["fdatasync by PostgreSQL"] == (1, 1)
        assert plain[Source.CALLS]["bytes written by the client"][0] > 0
    assert more[Source.FILES]["data files"] == (2, 2)
    gets = f"GET requests to {IcebergRest.title}"
    asked = [each[Source.NETWORK].get(gets, (0, 0))[0] for each in (plain, more)]
    assert asked[1] == asked[0] + 1
    said = {line.partition(":")[0] for line in alone(found, MORE).differences(alone(found, PLAIN))}
    assert {name for name in said if not name.startswith("bytes ")} == {
        "data files",
        gets,
        f"round trips to {IcebergRest.title}",
        f"connections to {IcebergRest.title}",
    }
    assert Source.MEMORY not in plain or plain[Source.MEMORY] == {}
    assert IN_SERIES not in plain[Source.NETWORK]
    assert {Source.MEMORY, IN_SERIES, "requests to Kafka"} <= found.not_counted.keys()
    assert found.pipeline["iceberg.control.commit.interval-ms"] == "2000"


def alone(found: Anatomy, number: int) -> Anatomy:
    return replace(found, commits={1: found.commits[number]})
