"""OpenSearch's index: what the oracle sees of planted faults, and what the end of the server does."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pyarrow as pa
import pytest
from tests.conformance.checks import OpenTable
from tests.conformance.trips import YELLOW, trips

from tidemark.config import ServicesConfig
from tidemark.errors import ServiceError, SystemFailure
from tidemark.measure.oracle import consult
from tidemark.paths import Workspace
from tidemark.services.base import ServiceContext
from tidemark.services.opensearch import OpenSearch
from tidemark.systems.base import Context
from tidemark.systems.opensearch import PAGE, OpenSearchIndex

ROWS = PAGE + 5  # more than an answer may hold


@pytest.fixture
def index(open_table: OpenTable) -> OpenSearchIndex:
    index = open_table(OpenSearchIndex)
    assert isinstance(index, OpenSearchIndex)
    index.create(YELLOW)
    index.write(trips(YELLOW, ROWS))
    return index


def test_planted_faults_are_seen_by_the_oracle(index: OpenSearchIndex) -> None:
    assert consult(index, ROWS).verdict and index.inlined_rows() == ROWS
    client = index.client_factory().open()
    first, second, *_ = client.documents()
    client.ask("POST", "_doc", second["_source"])
    found = consult(index, ROWS)
    assert (found.verdict, found.missing, found.duplicated, found.unexpected) == (False, 0, 1, 0)
    client.ask("DELETE", f"_doc/{first['_id']}")
    found = consult(index, ROWS)
    assert (found.verdict, found.missing, found.duplicated, found.unexpected) == (False, 1, 1, 0)
    client.close()


def test_document_is_refused_by_itself(index: OpenSearchIndex) -> None:
    with pytest.raises(SystemFailure, match=r"refused 1 of 2 documents: .*no number"):
        index.write(pa.table({"id": ["no number", str(ROWS)]}))
    assert consult(index, ROWS + 1).verdict


def test_settings_are_those_that_are_reported(index: OpenSearchIndex) -> None:
    assert dict(index.settings()) == {
        "number_of_shards": "1",
        "number_of_replicas": "0",
        "translog.durability": "REQUEST",
        "refresh_interval": "1s",
        "codec": "default",
    }


def test_killed_server_is_reported_and_keeps_what_it_acknowledged(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path)
    with OpenSearch.from_config(ServiceContext(workspace, workspace.work / "opensearch", ServicesConfig())) as server:
        assert server.version() == "3.9.0"
        (tmp_path / "table").mkdir()
        index = OpenSearchIndex(Context(tmp_path / "table", {OpenSearch: server}, ROWS), OpenSearchIndex.Options())
        index.create(YELLOW)
        index.write(trips(YELLOW, ROWS))
        for pid in server.pids():
            os.kill(pid, signal.SIGKILL)
        with pytest.raises(OSError):
            index.write(trips(YELLOW, 1, ROWS))
        while not server.has_ended():  # its last thread, after its first
            time.sleep(0.05)
        with pytest.raises(ServiceError, match=r"OpenSearch ended on its own \(killed by SIGKILL\)"):
            server.check()
        server.restart()
        index.reconnect()
        index.write(trips(YELLOW, 1, ROWS))
        assert consult(index, ROWS + 1).verdict
        index.close()
