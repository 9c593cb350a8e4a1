"""Samples of one window: a row per request with its outcome, and the costs of each step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tidemark.measure.workload import ColumnsWindow
from tidemark.studies.catalogs.record import ACKED, CASCADED, CONFLICT, FAILED, UNKNOWN, Step
from tidemark.studies.catalogs.requests import CREATE, Phase
from tidemark.studies.catalogs.window.generator import Played

NOT_THERE, CONFLICTED = 404, 409
COLUMNS = {  # of operations.parquet: a request is an operation
    "start_ns": "when the request was sent",
    "elapsed_ns": "time from sending it to its answer, retries included",
    "response_ns": "time from when it was due to its answer",
    "late_ns": "time by which it was sent after it was due",
    "part": "part of the workload",
    "step": "step of the part",
    "kind": "kind of request, such as create table",
    "status": "HTTP status of the answer; 0: there was none",
    "outcome": "acked, conflict, failed, unknown or cascaded",
    "user": "number of the user who sent it",
    "attempts": "how often it was sent",
    "doubled": "names that the answer lists twice",
    "rows": "1 if it was acknowledged, else 0",
}


def outcomes(status: NDArray[np.int64], creates: NDArray[np.bool_]) -> NDArray[np.object_]:
    """Return the outcome of each request; `creates` marks the requests that create something.

    A request that the server failed (5xx) or did not answer may have been done nevertheless: unknown. A creation below
    a missing namespace (404) is the consequence of another failure: cascaded.
    """
    found = np.full(len(status), FAILED, object)
    found[(status >= 500) | (status < 100)] = UNKNOWN
    found[(status >= 200) & (status < 300)] = ACKED
    found[status == CONFLICTED] = CONFLICT
    found[creates & (status == NOT_THERE)] = CASCADED
    return found


@dataclass(slots=True)
class CatalogWindow(ColumnsWindow):
    """Window of catalog requests, with columns in the order of the phases' requests.

    It is filled once the load generator has reported every result.
    """

    phases: Sequence[Phase]
    steps: list[Step] = field(default_factory=list)
    said: tuple[str, ...] = ()
    ended: bool = False  # all phases were played

    def take(self, played: Played) -> None:
        """Convert the load generator's results into columns."""
        asked = [(phase, request) for phase in self.phases for request in phase.requests]
        numbers = {name: np.array(values, np.int64) for name, values in played.columns.items()}
        creates = np.array([request.kind.act == CREATE for _, request in asked])
        late = np.maximum(numbers["late_ns"], 0)
        outcome = outcomes(numbers["status"], creates)
        # A creation that was retried after a server failure may conflict with its own first attempt.
        outcome[creates & (numbers["attempts"] > 1) & (outcome == CONFLICT)] = UNKNOWN
        found: dict[str, NDArray[Any]] = {
            **numbers,
            "start_ns": numbers["start_ns"] - played.began_ns[0],
            "response_ns": numbers["elapsed_ns"] + late,
            "late_ns": late,
            "part": np.array([phase.part for phase, _ in asked], object),
            "step": np.array([phase.step for phase, _ in asked], object),
            "kind": np.array([request.kind.name for _, request in asked], object),
            "outcome": outcome,
            "rows": (outcome == ACKED).astype(np.int64),
        }
        self.columns = {name: found[name] for name in COLUMNS}
        self.said = played.said

    @property
    def in_order(self) -> dict[str, NDArray[Any]]:
        order = np.argsort(self.columns["start_ns"], kind="stable")
        return {name: values[order] for name, values in self.columns.items()}

    @property
    def in_flight(self) -> int:
        """Largest number of concurrent requests."""
        starts, ends = self.columns["start_ns"], self.columns["start_ns"] + self.columns["elapsed_ns"]
        moments = np.concatenate([starts, ends])
        changes = np.concatenate([np.ones(len(starts), np.int64), -np.ones(len(ends), np.int64)])
        # If one request ends when another begins, the end comes first.
        return int(np.cumsum(changes[np.lexsort((changes, moments))]).max(initial=0))

    def budget(self) -> dict[str, int]:
        steps = {step.part: 0 for step in self.steps}
        for step in self.steps:
            steps[step.part] += step.elapsed_ns
        return {**steps, "rest": self.elapsed_ns - sum(steps.values())}
