"""What run.json says of a run beside its numbers: which series, system and versions, and what to mark it with."""

from __future__ import annotations

import platform
from dataclasses import asdict
from functools import cache

import confluent_kafka
import pyarrow as pa

from tidemark.measure.loop import Window
from tidemark.measure.runfiles import SeriesPart, SystemPart
from tidemark.measure.spec import SeriesSpec
from tidemark.stream.sizes import EventSizes
from tidemark.systems.base import System, Variant

# Shares of a window above which a run is marked: spent waiting for the producer, and in no part of the time budget.
STARVED_SHARE = 0.001
UNACCOUNTED_SHARE = 0.01


def marks(window: Window) -> tuple[str, ...]:
    marks = []
    share = window.wait_for_producer_ns / window.elapsed_ns
    if share > STARVED_SHARE:
        marks.append(f"starved: {100 * share:.2f} % of the window went by waiting for the producer")
    unaccounted = window.budget()["rest"] / window.elapsed_ns
    if abs(unaccounted) > UNACCOUNTED_SHARE:
        marks.append(f"unaccounted: {100 * unaccounted:.2f} % of the window is in no part of the time budget")
    return tuple(marks)


def logical_bytes(sizes: EventSizes, events: int) -> int:
    """Arrow bytes of the acknowledged rows: the dataset's bytes a row, times the rows."""
    return round(sizes.arrow_bytes * events)


@cache
def client_versions(system: type[System]) -> dict[str, str]:
    """What the client's libraries call themselves, asked once a process: for some a client is started for it."""
    return dict(system.versions())


def libraries() -> dict[str, str]:
    return {
        "confluent-kafka": confluent_kafka.__version__,
        "librdkafka": confluent_kafka.libversion()[0],
        "PyArrow": pa.__version__,
        "Python": platform.python_version(),
    }


def series_part(spec: SeriesSpec) -> SeriesPart:
    return SeriesPart(
        id=spec.id,
        system=spec.name,
        mode=spec.mode,
        batch_size=spec.batch_size,
        stack=spec.stack,
        protocol=spec.protocol,
        position=spec.position,
        repeat=spec.repeat,
        study=spec.study,
        threads=spec.threads,
        cpus=spec.cpus,
        encoding=spec.encoding,
        overlap=spec.overlap,
        read_ahead=spec.read_ahead,
    )


def system_part(variant: Variant, system: System, schema: pa.Schema) -> SystemPart:
    return SystemPart(
        name=variant.name,
        base=system.name,
        title=variant.title,
        format=system.format,
        client=system.client,
        catalog=system.catalog,
        in_thesis=system.in_thesis,
        notes=tuple(system.notes),
        options=asdict(variant.options),
        settings=dict(system.settings()),
        capabilities=tuple(sorted(system.capabilities)),
        durability=system.durability.summary,
        durability_level=system.durability_level,
        durability_source=system.durability.source,
        type_mappings=tuple(asdict(mapping) for mapping in system.type_mappings(schema)),
    )
