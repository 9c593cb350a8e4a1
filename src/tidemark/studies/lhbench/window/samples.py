"""What one window left behind: a row a step, in the order of time."""

from __future__ import annotations

from dataclasses import dataclass

from tidemark.measure.done import DoneWindow

NOT_TOLD = -1  # in place of nanoseconds that nobody knows


@dataclass(slots=True)
class Done:
    """One step. `elapsed_ns` is what its statements took together; `error` says why it failed, else it is empty."""

    phase: str
    kind: str
    subject: str
    iteration: int
    start_ns: int
    elapsed_ns: int
    planned_ns: int  # until the plan of the last statement was there
    cpu_ns: int  # of the engine's processes
    rows: int  # of the answer
    error: str = ""


@dataclass(slots=True)
class LakeWindow(DoneWindow[Done]):
    """`elapsed_ns`: of all phases, without what was read and compared between them."""

    def budget(self) -> dict[str, int]:
        """What kinds of step took, and the rest."""
        parts: dict[str, int] = {}
        for each in self.done:
            parts[each.kind] = parts.get(each.kind, 0) + each.elapsed_ns
        return {**parts, "rest": self.elapsed_ns - sum(parts.values())}
