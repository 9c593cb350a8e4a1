"""Tests of the consumer's process without a broker: a failed and a late start are reported, and it is ended."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import pyarrow as pa
import pytest

from tidemark.errors import SystemFailure
from tidemark.studies.freshness import consumer
from tidemark.studies.freshness.consumer import OwnConsumer
from tidemark.studies.freshness.settings import Policy
from tidemark.systems.null import NullClientFactory
from tidemark.systems.sinks import Source
from tidemark.systems.tables import TableSystem
from tidemark.systems.writers import ClientFactory

SOURCE = Source("127.0.0.1:9", "topic", pa.schema([("id", pa.int64())]))


class Table:
    def __init__(self, client_factory: object) -> None:
        self._factory = client_factory

    def client_factory(self) -> ClientFactory:
        return cast(ClientFactory, self._factory)


def start(own: OwnConsumer, client_factory: object) -> None:
    own.start(SOURCE, cast(TableSystem, Table(client_factory)))


def test_failed_start_is_reported_with_the_log(tmp_path: Path) -> None:
    own = OwnConsumer(tmp_path, "record", Policy(rows=1, interval_ms=None))
    with pytest.raises(SystemFailure, match=r"(?s)the consumer ended on its own\. Its log, .*no attribute 'open'"):
        start(own, "no factory")
    own.stop()
    assert own.pids() == []


def test_late_start_is_reported_and_its_cpu_time_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(consumer, "READY_SECONDS", 3.0)
    own = OwnConsumer(tmp_path, "record", Policy(rows=1, interval_ms=None))
    with pytest.raises(SystemFailure, match=r"the consumer was not ready within 3 s; its log is .*/consumer\.log"):
        start(own, NullClientFactory())
    assert len(own.pids()) == 1
    own.check()
    own.stop()
    own.stop()
    assert own.pids() == [] and own.ended_seconds() > 0
