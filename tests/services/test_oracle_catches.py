"""A system that loses a row, and one that writes a row twice, are caught after their window, on a real table."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tidemark.config import ServicesConfig, load
from tidemark.dataset import Provenance
from tidemark.errors import OracleError
from tidemark.events import Encoding
from tidemark.machine.cold import Method, prove
from tidemark.machine.inventory import inventory
from tidemark.measure.plan import make_plan
from tidemark.measure.run import Bench, margin, measure_run
from tidemark.measure.servers import prepared
from tidemark.paths import Workspace, private_directory
from tidemark.services.kafka import Kafka
from tidemark.stream.producer import Producer
from tidemark.stream.sizes import weigh
from tidemark.stream.topics import Topics
from tidemark.systems.base import System, Variant
from tidemark.systems.delta_rs import DeltaRs

pytestmark = pytest.mark.services
SHIPPED = Path(__file__).parents[2] / "config.yaml"


class Honest(DeltaRs):
    name = "honest"


class Lossy(DeltaRs):
    """Drops the 1,000th row that it is given."""

    name = "lossy"

    def write(self, rows: pa.Table) -> None:
        super().write(rows.filter(pa.compute.not_equal(rows.column("id"), 999)))


class Duplicating(DeltaRs):
    """Writes the 1,000th row in place of the one before it, so that the count is right."""

    name = "duplicating"

    def write(self, rows: pa.Table) -> None:
        ids = rows.column("id").to_numpy()
        places = np.where(ids == 998, np.flatnonzero(ids == 999)[0], np.arange(len(ids))) if 999 in ids else None
        super().write(rows if places is None else rows.take(pa.array(places)).combine_chunks())


@pytest.fixture
def measure(workspace: Workspace) -> Callable[[type[System]], Path]:
    def run(system: type[System]) -> Path:
        trips = workspace.root / "trips.parquet"
        pq.write_table(pa.table({"id": np.arange(5_000), "fare": np.arange(5_000) / 4}), trips)
        base = make_plan(load(SHIPPED, ["systems={delta-rs: {}}", "modes=[batch]"])).series[0]
        spec = replace(base, name=system.name, window_seconds=1.0, batch_size=500)
        work = private_directory(workspace.work / system.name)
        dataset = Provenance("path", False, "trips", "yellow", 5_000, "0" * 64, (), (), (), 0, 4_999)
        target = workspace.root / "run-0"
        with prepared((Kafka,), workspace, work, ServicesConfig(kafka_heap_mb=512)) as servers:
            servers.start()
            kafka = servers.by_class[Kafka]
            assert isinstance(kafka, Kafka)
            with Producer(trips, work) as producer:
                topics = Topics(kafka, producer, system.name)
                variant = Variant(system.name, system, system.Options(), system.title)
                machine = inventory(workspace.root)
                bench = Bench(
                    spec, variant, servers, producer, topics, dataset, weigh(trips), machine, {}, work
                )  # fmt: skip
                topics.begin(Encoding.RECORD, 2 * margin(500))
                proof = prove(Method.NONE, {})
                measure_run(bench, 0, target, proof, "cold start", False, lambda _what: None)
        return target

    return run


def test_an_honest_system_is_counted(measure: Callable[[type[System]], Path]) -> None:
    target = measure(Honest)
    assert (target / "run.json").exists()
    assert pq.read_table(target / "operations.parquet").num_rows >= 2


@pytest.mark.parametrize(
    ("system", "said"),
    [(Lossy, r"1 missing, 0 more than once"), (Duplicating, r"1 missing, 1 more than once")],
)
def test_a_dishonest_system_is_not(
    measure: Callable[[type[System]], Path], workspace: Workspace, system: type[System], said: str
) -> None:
    with pytest.raises(OracleError, match=re.compile(said)):
        measure(system)
    assert not (workspace.root / "run-0").exists()
