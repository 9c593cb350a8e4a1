"""Main facts about a run, as text."""

from __future__ import annotations

from tidemark.runs.manifest import Footprint
from tidemark.runs.proofs import ColdProof
from tidemark.runs.provenance import harness_words, machine_words
from tidemark.runs.run import STATES, Run

OLD = "not recorded (run files of version 1)"


def _proof(proof: ColdProof) -> str:
    groups = ", ".join(f"{name} {each.resident_bytes:,} of {each.bytes:,} bytes" for name, each in proof.residency)
    return (
        f"{proof.verdict}, {proof.reason or 'no reason given'} (method {proof.method}; in the page cache: "
        f"{groups or 'nothing to look at'})"
    )


def _interference(run: Run) -> str:
    found = run.manifest.interference
    if found is None:
        return OLD
    named = (("foreign", found.foreign_cores), ("stolen", found.steal_cores), ("kernel's", found.kernel_cores))
    cores = ", ".join(f"{name} {'not known' if value is None else f'{value:.3f}'}" for name, value in named)
    told = f"busy processors in the mean: {cores}; suspended for {found.suspended_seconds:.3f} s"
    return f"DISTURBED: {'; '.join(found.disturbed)} ({told})" if found.disturbed else told


def _disk(run: Run) -> str:
    disk = run.manifest.disk
    charged = disk.charged_bytes
    if charged is None:
        return disk.why_not_charged or OLD
    left = "not known" if disk.left_bytes is None else f"{disk.left_bytes:,} bytes"
    took = "" if disk.sync_seconds is None else f" (which took {disk.sync_seconds:.2f} s)"
    return (
        f"{charged:,} bytes are charged to the system: {disk.window_bytes:,} in the window and {disk.sync_bytes:,} by "
        f"a sync after it{took}, less {disk.stream_bytes:,} of the stream. Unwritten when the window opened: {left}"
    )


def _stored(footprint: Footprint) -> str:
    catalog = "not measurable" if footprint.catalog_bytes is None else f"{footprint.catalog_bytes:,} bytes"
    return (
        f"data {footprint.data_bytes:,} bytes in {footprint.data_files:,} files, metadata "
        f"{footprint.metadata_bytes:,} bytes in {footprint.metadata_files:,} files, catalog {catalog}"
    )


def facts(run: Run) -> dict[str, str]:
    """Return the main facts about a run, by label."""
    m = run.manifest
    oracle, footprint = m.oracle, m.footprint
    wrong = f"{oracle.missing:,} missing, {oracle.duplicated:,} twice, {oracle.unexpected:,} unexpected"
    verdict = f"holds all {oracle.expected:,} ids, read by {oracle.reader}" if oracle.verdict else f"wrong: {wrong}"
    share = {part: 100 * time / m.elapsed_ns for part, time in m.time_budget_ns}
    made = {
        "Oracle": verdict if oracle.applicable else "nothing is stored, so nothing to check",
        "Called": f"{run.state}. {STATES}" if run.cold else run.state,
        "Cold proof": f"before the servers start: {_proof(m.cold_proof)}",
        "Opening": f"when the window opens: {_proof(m.opening)}" if m.opening else OLD,
        "First write": OLD if m.first_write_ns is None else f"{m.first_write_ns / 1e6:,.3f} ms",
        "Boot": f"{m.cold_proof.boot_id}, up for {m.cold_proof.uptime_s:,.0f} s",
        "History": m.history or "not stated",
        "Warm-up": m.warm_up.label if m.warm_up else "none",
        "Interference": _interference(run),
        "Disk": _disk(run),
        "Measured by": harness_words(m.harness),
        "Machine": machine_words(m.machine),
        "Warnings": "; ".join(m.marks) or "none",
        "Started": m.started_at,
        "Window": f"{run.elapsed_s:.3f} s (configured: {m.window_s:g} s)",
        "Written": f"{m.events:,} events in {m.operations:,} operations",
        "Time budget": ", ".join(f"{part.replace('_', ' ')} {value:.1f} %" for part, value in share.items()),
        "Stored": _stored(footprint) if footprint else "no table",
        "Versions": ", ".join(f"{name} {version}" for name, version in m.versions),
        "Durability": f"{m.system.durability} (level: {m.system.durability_level})",
    }
    if m.stretches > 1:
        made["Window"] += f", measured in {m.stretches:,} stretches: the topic was refilled between them, uncounted"
    if m.flush is not None:
        made["Flush"] = f"{m.flush.rows:,} rows in {m.flush.seconds:.3f} s"
    if m.merge is not None:
        made["Merge"] = f"{m.merge.files_before:,} files to {m.merge.files_after:,} in {m.merge.seconds:.3f} s"
    return made
