"""Series: one system in one mode, with cold run 0 and then the hot runs, on one warm-up history."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from functools import partial

from tidemark.errors import RebootNeeded, TidemarkError
from tidemark.machine import cold, reboot
from tidemark.machine.child import in_a_child
from tidemark.machine.disk import settle
from tidemark.machine.machine_lock import hold_machine
from tidemark.measure.session import ServerSession, described, logs_folder, series_folder, work_folder
from tidemark.measure.workload import ProgressCallback, Workload
from tidemark.paths import Workspace, private_directory
from tidemark.process_lifetime import was_interrupted
from tidemark.runs.outcome import Outcome, SeriesRecord
from tidemark.runs.spec import SeriesSpec
from tidemark.systems.registry import variant_of


def needs_restart(spec: SeriesSpec, kind: type[Workload], workspace: Workspace) -> bool:
    """Return True if `spec`, of the workload `kind`, still has a cold run to do, which requires an unused boot."""
    if spec.cold != "reboot" or 0 in SeriesRecord(workspace.root / spec.directory).finished():
        return False
    return kind.unavailable(spec, variant_of(spec)) is None


def measure_series(spec: SeriesSpec, kind: type[Workload], workspace: Workspace, show: ProgressCallback) -> Outcome:
    """Measure the missing runs of `spec`, and write outcome.json in all cases except Ctrl-C.

    `kind` is the workload that the spec names.
    Complete runs are kept. A series that was interrupted after its cold run continues with a warm-up window that
    is not counted, so that its hot runs are hot. Raises RebootNeeded, and writes nothing, if the cold run needs
    an unused boot and this one has been used.
    """
    record = SeriesRecord(series_folder(spec, workspace))
    private_directory(record.directory)
    reason = kind.unavailable(spec, variant_of(spec))
    if reason is not None:
        return record.end("not-run", reason)
    try:
        with record.attempt(), hold_machine(show):
            try:
                _measure(ServerSession(spec, kind, workspace, show), record)
            except RebootNeeded:
                raise
            except Exception as error:
                if was_interrupted():
                    raise KeyboardInterrupt from error
                raise _failed(error, spec, workspace) from error
    except RebootNeeded:
        raise
    except TidemarkError as error:
        return record.end("failed", str(error), error.exit_code)
    return record.end("complete")


def _failed(error: Exception, spec: SeriesSpec, workspace: Workspace) -> TidemarkError:
    """Convert `error` to a TidemarkError that names the kept copies of logs, as the work folder no longer exists."""
    said = described(error)
    place = re.compile(re.escape(str(work_folder(spec, workspace))) + r"(?:/[\w-]+)?/([\w-]+\.log)")
    reason = place.sub(lambda found: str(logs_folder(spec, workspace) / found[1]), str(said))
    failed = TidemarkError(reason)
    failed.exit_code = said.exit_code  # type: ignore[misc]
    return failed


def _measure(server_session: ServerSession, record: SeriesRecord) -> None:
    """Measure the missing runs; a cold run that is to be measured again gets a separate `ServerSession`."""
    spec, workspace = server_session.spec, server_session.workspace
    if spec.dataset_directory:
        trips = json.loads((workspace.root / spec.dataset_directory / "dataset.json").read_text())
        record.set_aside(trips["sha256"])
    missing = record.missing(spec.runs)
    if not missing:
        return
    reboot.claim(workspace, spec.id, alone=spec.cold == "reboot" and missing[0] == 0)
    server_session = replace(server_session, rest_bytes=settle(None).left_bytes)
    if spec.cold != cold.Method.REBOOT and server_session.workload().needs_probe():  # a restart makes only one run cold
        in_a_child(server_session.probe)
    while missing:
        in_a_child(partial(server_session.measure, missing))
        missing = record.missing(spec.runs)
