"""Order to run queries on a second engine, from the harness's side."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tidemark.errors import MachineError
from tidemark.services.spark.server import Spark
from tidemark.studies.lhbench.judge.calls import Judge
from tidemark.studies.lhbench.second.ways import NONE, WAYS
from tidemark.studies.lhbench.window.script import Phase


def asked(judge: Judge, reader: str, phase: Phase, tables: Mapping[str, Any]) -> dict[str, Any]:
    """Return a second engine's results for the queries of `phase`, repeated as often; or the `reason` for none.

    A failure of the second engine is a finding, and not an error of the measured system.
    """
    if reader not in WAYS:
        return {"reason": NONE[reader]}
    order = {
        "do": "second",
        "folder": str(judge.folder),
        "reader": reader,
        "tables": tables,
        "queries": {step.subject: step.text for step in phase.steps},
        "passes": max(step.number for step in phase.steps),
        "memory_mb": Spark.heap_mb,
    }
    try:
        return judge.ask(order)
    except MachineError as error:
        return {"reason": str(error).splitlines()[0]}
