"""Tests of the paced producer's process without a broker: its death and its silence are reported with its log."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tidemark.errors import StreamError
from tidemark.stream import paced
from tidemark.stream.paced import JSON, PacedProducer

NOWHERE = "127.0.0.1:9"


def test_death_is_reported_with_the_status_and_the_log(tmp_path: Path) -> None:
    with PacedProducer(tmp_path / "missing.parquet", tmp_path, NOWHERE, "topic", JSON) as producer:
        for _ in range(2):
            with pytest.raises(StreamError, match=rf"the producer died \(exit status 1\); its log is {tmp_path}/produ"):
                producer.wait()
        producer.enough()
        assert not producer.is_alive()
    assert "missing.parquet" in (tmp_path / "producer.log").read_text()


def test_silence_is_reported_with_the_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pq.write_table(pa.table({"id": pa.array([1], pa.int64())}), tmp_path / "trips.parquet")
    monkeypatch.setattr(paced, "ANSWER_SECONDS", 0.5)
    with PacedProducer(tmp_path / "trips.parquet", tmp_path, NOWHERE, "topic", JSON) as producer:
        with pytest.raises(StreamError, match=r"the producer is not done; its log is .*producer\.log"):
            producer.send(1)
        assert producer.is_alive()
