"""Confounders of a window: disk traffic, foreign CPU time and clock jumps, observed from outside of it."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import NamedTuple

from tidemark.config import DisturbanceConfig
from tidemark.machine.disk import REST_BYTES, Settled, sent_bytes
from tidemark.machine.processes import Others, family, machine_times, others
from tidemark.machine.sampler import Group, Sampler
from tidemark.runs.circumstances import Disk, Interference
from tidemark.runs.serde import pairs

NAMED = 3  # number of programs that a disturbance names
LEAST_NAMED_CORES = 0.02


class _Clocks(NamedTuple):
    """Readings of the kernel's clocks at one moment, in seconds."""

    monotonic: float
    boot: float
    wall: float

    @classmethod
    def now(cls) -> _Clocks:
        return cls(*map(time.clock_gettime, (time.CLOCK_MONOTONIC, time.CLOCK_BOOTTIME, time.CLOCK_REALTIME)))


class Watch:
    """Context manager around each stretch of a window; its results cover all stretches and are read at the end.

    Leaving it syncs the machine, so that all writes of the stretch, and dirty pages from before, are on the disk. Bytes
    written by the groups named in `stream` are counted separately.
    """

    def __init__(
        self,
        directory: Path,
        groups: Mapping[str, Group],
        stream: Collection[str],
        on_second: Callable[[float], None] = lambda _seconds: None,
    ) -> None:
        self.sampler = Sampler(directory, groups, on_second=on_second)
        self._groups = groups
        self._settled: list[Settled] = []
        self._window_bytes: int | None = 0
        self._sync_bytes: int | None = 0
        self._sync_seconds = 0.0
        self._sent: dict[str, int | None] = {name: 0 for name in stream if name in groups}
        self._seconds = self._ours = self._programs = self._kernel = self._stolen = 0.0
        self._suspended = self._stepped = 0.0
        self._foreign: dict[str, float] = {}
        self._foreign_bytes: int | None = 0

    def opens_after(self, settled: Settled) -> None:
        """Record how the machine settled before the stretch that is about to open."""
        self._settled.append(settled)

    def __enter__(self) -> Watch:
        self._others_before = self._others()
        self._sent_before = self._sent_now()
        self._used_before = self._used()
        self._written_before = self.sampler.disk.read()
        self._machine_before = machine_times()
        self._clocks_before = _Clocks.now()
        self.sampler.__enter__()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self.sampler.__exit__(kind)
        clocks, machine, used = _Clocks.now(), machine_times(), self._used()
        written = self.sampler.disk.read()
        self._count_processors(clocks, used, machine.programs - self._machine_before.programs)
        self._stolen += max(0.0, machine.stolen - self._machine_before.stolen)
        before = self._clocks_before
        self._suspended += (clocks.boot - before.boot) - (clocks.monotonic - before.monotonic)
        self._stepped += abs((clocks.wall - before.wall) - (clocks.boot - before.boot))
        if kind is None:
            self.sampler.add_shared_memory()
            self._sync(written)

    def _count_processors(self, clocks: _Clocks, used: float, programs: float) -> None:
        self._seconds += clocks.monotonic - self._clocks_before.monotonic
        self._ours += max(0.0, used - self._used_before)
        self._programs += max(0.0, programs)
        after = self._others()
        self._kernel += after.kernel_since(self._others_before)
        sent = _less(after.sent_bytes, self._others_before.sent_bytes)
        self._foreign_bytes = _plus(self._foreign_bytes, sent)
        for name, seconds in after.since(self._others_before):
            self._foreign[name] = self._foreign.get(name, 0.0) + seconds

    def _sync(self, written: int | None) -> None:
        began = time.monotonic()
        os.sync()
        self._sync_seconds += time.monotonic() - began
        synced = self.sampler.disk.read()
        self._window_bytes = _plus(self._window_bytes, _less(written, self._written_before))
        self._sync_bytes = _plus(self._sync_bytes, _less(synced, written))
        for name, sent in self._sent_now().items():
            self._sent[name] = _plus(self._sent[name], _less(sent, self._sent_before[name]))

    def _others(self) -> Others:
        grouped = {pid for group in self._groups.values() for pid in group.pids()}
        return others(grouped | set(family(os.getpid())))

    def _sent_now(self) -> dict[str, int | None]:
        return {name: sent_bytes(self._groups[name].pids()) for name in self._sent}

    def _used(self) -> float:
        """Return the CPU seconds of the groups, and of all that this process started and that ended, killed or not."""
        spent = os.times()
        ended = spent.children_user + spent.children_system
        return ended + sum(group.living_seconds(group.pids()) or 0.0 for group in self._groups.values())

    def disk(self, rest_bytes: int | None) -> Disk:
        known = self.sampler.disk.device is not None
        stream = list(self._sent.values())
        return Disk(
            device=self.sampler.disk.device,
            reason=self.sampler.disk.reason,
            rest_bytes=rest_bytes,
            left_bytes=max((each.left_bytes for each in self._settled if each.left_bytes is not None), default=None),
            settle_seconds=sum(each.seconds for each in self._settled),
            window_bytes=self._window_bytes if known else None,
            sync_bytes=self._sync_bytes if known else None,
            sync_seconds=self._sync_seconds,
            stream_bytes=None if None in stream else sum(each for each in stream if each is not None),
            written_by=pairs(self._sent),
        )

    def interference(self, bounds: DisturbanceConfig) -> Interference:
        seconds = max(self._seconds, 1e-9)
        foreign = max(0.0, self._programs - self._ours - self._kernel) / seconds
        steal = self._stolen / seconds
        lines = []
        if foreign > bounds.foreign_cores:
            lines.append(f"foreign processor time: {foreign:.2f} processors on average{self._culprits(seconds)}")
        if steal > bounds.steal_cores:
            lines.append(f"steal: the hypervisor kept {steal:.2f} processors on average")
        if self._suspended > bounds.gap_seconds:
            lines.append(f"gap: the machine was suspended for {self._suspended:.2f} s while the window was open")
        if self._stepped > bounds.gap_seconds:
            lines.append(f"gap: the wall clock was stepped by {self._stepped:.2f} s while the window was open")
        if (halted := self.sampler.halted_s) > bounds.gap_seconds:
            lines.append(f"gap: the process that measures was halted for {halted:.2f} s while the window was open")
        if (foreign_bytes := self._foreign_bytes or 0) > max(
            REST_BYTES, bounds.disk_share * (self.disk(None).charged_bytes or 0)
        ):
            lines.append(f"disk: other programs wrote {foreign_bytes / 1e6:.1f} MB while the window was open")
        if any(not each.at_rest for each in self._settled):
            left = max(each.left_bytes or 0 for each in self._settled)
            lines.append(f"unsettled: {left / 1e6:.1f} MB still waited for a disk when the window opened")
        return Interference(
            foreign, self._kernel / seconds, steal, self._suspended, self._stepped, tuple(lines), self._foreign_bytes
        )  # fmt: skip

    def _culprits(self, seconds: float) -> str:
        """Return the foreign programs that used most CPU time, as far as they are visible, in parentheses."""
        most = sorted(self._foreign.items(), key=lambda pair: -pair[1])[:NAMED]
        named = [f"{name} {spent / seconds:.2f}" for name, spent in most if spent / seconds >= LEAST_NAMED_CORES]
        return f" ({', '.join(named)})" if named else ""


def _less(after: int | None, before: int | None) -> int | None:
    return None if after is None or before is None else max(0, after - before)


def _plus(total: int | None, more: int | None) -> int | None:
    return None if total is None or more is None else total + more
