"""Series: one system in one mode, with cold run 0 and then hot runs, on one warm-up history; and blocks of rounds."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from tidemark.errors import RebootNeeded, TidemarkError
from tidemark.machine import cold, reboot
from tidemark.machine.child import in_a_child
from tidemark.machine.disk import settle
from tidemark.machine.processes import hold_machine
from tidemark.measure.session import ServerSession, drop_work, measure_in_turn, with_logs
from tidemark.measure.workload import ProgressCallback, Workload
from tidemark.paths import Workspace, private_directory
from tidemark.runs.outcome import KILLED, OUTCOME, Outcome, SeriesRecord
from tidemark.runs.spec import SeriesSpec
from tidemark.systems.registry import variant_of


def needs_restart(spec: SeriesSpec, kind: type[Workload], workspace: Workspace) -> bool:
    """Return True if `spec`, of the workload `kind`, still has a cold run to do, which requires an unused boot."""
    if spec.cold != "reboot" or spec.in_round or 0 in SeriesRecord(workspace.root / spec.directory).finished():
        return False
    return kind.unavailable(spec, variant_of(spec)) is None


def measure_series(spec: SeriesSpec, kind: type[Workload], workspace: Workspace, show: ProgressCallback) -> Outcome:
    """Measure the missing runs of `spec`, and write outcome.json in all cases except Ctrl-C.

    `kind` is the workload that the spec names.
    Complete runs are kept. A series that was interrupted after its cold run continues with a warm-up window that
    is not counted, so that its hot runs are hot. Raises RebootNeeded, and writes nothing, if the cold run needs
    an unused boot and this one has been used.
    """
    record = SeriesRecord(workspace.root / spec.directory)
    if (ended := _not_run(spec, kind, record)) is not None:
        return ended
    session = ServerSession(spec, kind, workspace, show)
    try:
        with record.attempt(), hold_machine(show):
            with_logs(partial(_measure, session, record), session)
    except RebootNeeded:
        raise
    except TidemarkError as error:
        return record.end("failed", str(error), error.exit_code)
    return record.end("complete")


def measure_block(
    specs: Sequence[SeriesSpec],
    kind: type[Workload],
    workspace: Workspace,
    show: Callable[[SeriesSpec], ProgressCallback],
) -> list[Outcome]:
    """Measure the missing runs of a block of rounds, the series `specs` in this order; write each one's outcome.json.

    All are of the workload `kind` and use the same servers in turn; if one of these dies, the rest of the block gets
    new ones. Complete runs are kept. `show` returns the callback of a series. A series that fails does not end the
    others.
    """
    records = {spec.id: SeriesRecord(workspace.root / spec.directory) for spec in specs}
    sessions = [ServerSession(spec, kind, workspace, show(spec)) for spec in specs]
    left = []
    for session in sessions:
        record = records[session.spec.id]
        if _not_run(session.spec, kind, record) is None:
            if _missing(session, record):
                (record.directory / OUTCOME).unlink(missing_ok=True)
                left.append(session)
            else:
                record.end("complete")
    if left:
        try:
            with hold_machine(left[0].show):
                _measure_in_turn(left, records)
        except TidemarkError as error:
            for session in _without_outcome(left, records):
                records[session.spec.id].end("failed", str(error), error.exit_code)
    else:
        drop_work(specs[0], workspace)
    return [Outcome.read(record.directory / OUTCOME) for record in records.values()]


def _not_run(spec: SeriesSpec, kind: type[Workload], record: SeriesRecord) -> Outcome | None:
    """Make the folder of the series; return its outcome if it cannot run here, else None."""
    private_directory(record.directory)
    reason = kind.unavailable(spec, variant_of(spec))
    return None if reason is None else record.end("not-run", reason)


def _measure(session: ServerSession, record: SeriesRecord) -> None:
    """Measure the missing runs; a cold run that is to be measured again gets a separate `ServerSession`."""
    spec, workspace = session.spec, session.workspace
    missing = _missing(session, record)
    if not missing:
        drop_work(spec, workspace)
        return
    reboot.claim(workspace, spec.id, alone=spec.cold == "reboot" and missing[0] == 0)
    session = replace(session, rest_bytes=settle(None).rest_bytes)
    if spec.cold != cold.Method.REBOOT and session.workload().needs_probe():  # a restart makes only one run cold
        in_a_child(session.probe)
    while missing:
        in_a_child(partial(session.measure, missing))
        missing = record.missing(spec.numbers)


def _measure_in_turn(sessions: Sequence[ServerSession], records: Mapping[str, SeriesRecord]) -> None:
    """Measure `sessions` until each has an outcome; what ends their process is the failure of the one that it was at.

    Raises TidemarkError if it was at none of them.
    """
    reboot.claim(sessions[0].workspace, sessions[0].spec.job, alone=False)
    rest_bytes = settle(None).rest_bytes
    left = [replace(session, rest_bytes=rest_bytes) for session in sessions]
    while left:
        tried = {each.spec.id: len(records[each.spec.id].attempts()) for each in left}
        try:
            with_logs(partial(in_a_child, partial(measure_in_turn, left)), left[0])
        except TidemarkError as error:
            begun = [each for each in left if _is_in_an_attempt(records[each.spec.id], tried[each.spec.id])]
            if not begun:
                raise
            for session in begun:
                records[session.spec.id].end("failed", str(error), error.exit_code)
        left = _without_outcome(left, records)


def _without_outcome(sessions: Sequence[ServerSession], records: Mapping[str, SeriesRecord]) -> list[ServerSession]:
    return [each for each in sessions if not (records[each.spec.id].directory / OUTCOME).exists()]


def _missing(session: ServerSession, record: SeriesRecord) -> list[int]:
    """Return the numbers of the runs to measure, after those on other trips were set aside."""
    spec = session.spec
    if spec.dataset_directory:
        trips = json.loads((session.workspace.root / spec.dataset_directory / "dataset.json").read_text())
        record.set_aside(trips["sha256"])
    return record.missing(spec.numbers)


def _is_in_an_attempt(record: SeriesRecord, tried: int) -> bool:
    """Return True if an attempt began after the first `tried` ones, and has no end."""
    return bool(attempts := record.attempts()[tried:]) and attempts[-1].status == KILLED
