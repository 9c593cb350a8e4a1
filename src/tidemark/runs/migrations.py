"""Upgrade of run files of older schema versions to the current one, before they are decoded."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

OLD_DISK = (
    "run files of version 1 charge the system with the stream's log, which reached the disk in the same window; "
    "measure again"
)
# Keys introduced by version 2, which files of version 1 lack.
NEW_IN_2 = ("tidemark", "opening", "interference")
NEW_OF_THE_DISK = (
    "rest_bytes",
    "left_bytes",
    "settle_seconds",
    "window_bytes",
    "sync_bytes",
    "sync_seconds",
    "stream_bytes",
)


def brought_up(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the content of run.json with renamed keys updated, and version 1 converted to version 2.

    Misplaced values are left unchanged: decoding reports them.
    """
    made = dict(values)
    if isinstance(made.get("series"), dict):
        made["series"] = _renamed(made["series"], "study", "sweep")
    if made.get("schema_version") != 1:
        return made
    if isinstance(disk := made.get("disk"), dict):
        # The disk counters of version 1 include the stream's log.
        known: dict[str, Any] = {
            "device": disk.get("device"),
            "reason": disk.get("reason") or OLD_DISK,
            "written_by": {},
        }
        made["disk"] = dict.fromkeys(NEW_OF_THE_DISK) | known
    return dict.fromkeys(NEW_IN_2) | made


def plan_brought_up(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the content of plan.json with renamed keys updated, and global settings copied into each series."""
    made = dict(values)
    config = made.get("config")
    if not isinstance(config, dict) or not isinstance(made.get("series"), list):
        return made
    made["config"] = _renamed(config, "study", "sweep")
    made["series"] = [_series(each, config) if isinstance(each, dict) else each for each in made["series"]]
    return made


def _series(values: dict[str, Any], config: dict[str, Any]) -> dict[str, Any]:
    ahead = config.get("read_ahead", 1) if values.get("mode") == "single" else 1
    lacking = {"repeats": values.get("id"), "title": values.get("system"), "base": values.get("system")}
    return lacking | {"read_ahead": ahead} | _renamed(values, "study", "sweep")


def _renamed(values: dict[str, Any], old: str, new: str) -> dict[str, Any]:
    return {new if name == old and new not in values else name: value for name, value in values.items()}
