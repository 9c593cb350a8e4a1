"""Sentences on how the runs were made, and on how sure their numbers can be: computed, like all others."""

from __future__ import annotations

from collections.abc import Sequence

from tidemark.analysis.runs import RunSet


def listed(items: Sequence[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} and {items[-1]}" if items else ""


def setting(run_set: RunSet) -> dict[str, str]:
    """Sentences by name."""
    return {
        "producer": _producer(run_set),
        "read-ahead": _read_ahead(run_set),
        "repeats": _repeats(run_set),
        "spread": _spread(run_set),
        "few-runs": _few_runs(run_set),
        "cold-runs": _cold_runs(run_set),
        "missing": _missing(run_set),
        "oracle": _oracle(run_set),
        "proofs": _proofs(run_set),
        "marks": _marks(run_set),
    }


def repeats(run_set: RunSet) -> int:
    """How often a series was measured, where most often."""
    return max(len(series.repeats) for series in run_set.series)


def _repeats(run_set: RunSet) -> str:
    if repeats(run_set) == 1:
        return "Each series was measured once."
    return (
        f"Each series was measured {repeats(run_set):,} times, every time with new servers and from the cold, and none "
        "was repeated before all had been measured."
    )


def _spread(run_set: RunSet) -> str:
    """What an interval of a series covers beside the noise inside runs."""
    hot = max(len(repeat.hot_runs) for repeat in run_set.repeats)
    if repeats(run_set) == 1:
        return (
            f"Over the {hot:,} hot runs of a series the interval also covers how far runs differ, which is learnt from "
            "all systems of a mode, and is widened for the small number of runs"
        )
    return (
        f"Over the {repeats(run_set):,} repeats of a series, each the mean of its {hot:,} hot runs, the interval also "
        "covers how far repeats differ, which is learnt from all systems of a mode, and is widened for the small "
        "number of repeats"
    )


def _few_runs(run_set: RunSet) -> str:
    if repeats(run_set) > 1:
        return (
            f"With {repeats(run_set):,} repeats of a series, how far repeats differ is mostly learnt from other "
            "systems. If one system is moodier than the others, its intervals are too narrow."
        )
    return (
        "With one series of a system, how far its runs differ is mostly learnt from other systems; if one is moodier "
        "than the others, its intervals are too narrow. What differs between series of the same system, such as the "
        "host's other guests and where files come to lie on the disk, is in no interval; a protocol that repeats each "
        "series shows how much that is."
    )


def _cold_runs(run_set: RunSet) -> str:
    if repeats(run_set) > 1:
        return (
            "How far cold runs differ is learnt from the repeats of all systems, each compared with its own hot runs."
        )
    return "One cold run a series cannot tell by itself how far cold runs differ."


def _producer(run_set: RunSet) -> str:
    modes = {run.manifest.producer_mode for run in run_set.runs}
    if modes == {"ahead"}:
        return (
            "The producer works before the window opens, so as not to compete with what is measured; where it "
            "stopped too early, the rest is produced beside the window, and the run carries a mark."
        )
    return "The producer works while the window is open, and competes with what is measured."


def _read_ahead(run_set: RunSet) -> str:
    most = run_set.config.integer("read_ahead", 1)
    if most == 1:
        return "One event is read, and written, before the next."
    return (
        f"Up to {most:,} events that the client holds already are read in one go; each is decoded, written and timed "
        "by itself, and has an equal part of the time that reading took."
    )


def _missing(run_set: RunSet) -> str:
    gone: dict[tuple[str, str], list[str]] = {}
    several = len(run_set.stacks) > 1
    for series in run_set.series:
        if not series.runs:
            name = f"{series.title} with {series.stack}" if several else series.title
            gone.setdefault((name, series.missing().rstrip(".")), []).append(series.mode_title)
    spelt = [f"{title} in {listed(sorted(modes))} mode ({reason})" for (title, reason), modes in sorted(gone.items())]
    return f"Without a run are {listed(spelt)}." if spelt else "Every series of the configuration has its runs."


def _oracle(run_set: RunSet) -> str:
    checked = [run for run in run_set.runs if run.manifest.oracle.applicable]
    wrong = [run.label for run in checked if not run.manifest.oracle.verdict]
    if not checked:
        return "No run could be checked."
    if wrong:
        return f"Of {len(checked):,} runs, these do not hold what was acknowledged: {listed(wrong)}."
    return f"All {len(checked):,} runs that could be checked hold exactly the ids that were acknowledged."


def _proofs(run_set: RunSet) -> str:
    first = [run for run in run_set.runs if run.cold]
    counts: dict[str, int] = {}
    for run in first:
        counts[run.manifest.cold_proof.verdict] = counts.get(run.manifest.cold_proof.verdict, 0) + 1
    if not first:
        return "No series has a first run."
    spelt = listed([f"{count:,} {verdict}" for verdict, count in sorted(counts.items())])
    methods = listed(sorted({run.manifest.cold_proof.method for run in first}))
    return f"Of {len(first):,} first runs, their proofs call {spelt} (method: {methods})."


def _marks(run_set: RunSet) -> str:
    marked: dict[str, list[str]] = {}
    for series in run_set.series:
        for mark in (mark for run in series.runs for mark in run.manifest.marks):
            marked.setdefault(mark.partition(":")[0], []).append(series.title)
    if not marked:
        return "No run carries a warning of the harness."
    spelt = [
        f"{mark} ({len(titles):,} of {len(run_set.runs):,} runs, of {listed(list(dict.fromkeys(titles)))})"
        for mark, titles in sorted(marked.items())
    ]
    return f"The harness warns of: {'; '.join(spelt)}."
