"""Sentences on how the runs were made, and on how sure their numbers can be: computed, like all others."""

from __future__ import annotations

from tidemark.analysis.words import listed
from tidemark.runs.manifest import DEFAULT_DURABILITY
from tidemark.runs.provenance import harness_words, mixture
from tidemark.runs.runset import RunSet


def setting(run_set: RunSet) -> dict[str, str]:
    """Sentences by name."""
    return {
        "repeats": _repeats(run_set),
        "spread": _spread(run_set),
        "few-runs": _few_runs(run_set),
        "cold-runs": _cold_runs(run_set),
        "missing": _missing(run_set),
        "oracle": _oracle(run_set),
        "proofs": _proofs(run_set),
        "openings": _openings(run_set),
        "marks": _marks(run_set),
        "measured-by": _measured_by(run_set),
        "mixture": " ".join(mixture(run_set)),
        "interference": _interference(run_set),
        "attempts": _attempts(run_set),
        "warm-up": _warm_up(run_set),
        "durability": _durability(run_set),
    }


def repeats(run_set: RunSet) -> int:
    """How often a series was measured, where most often."""
    return max(len(series.repeats) for series in run_set.series)


def _repeats(run_set: RunSet) -> str:
    if repeats(run_set) == 1:
        return "Each series was measured once."
    return (
        f"Each series was measured {repeats(run_set):,} times, every time with new servers and from a cold start, and "
        "none was repeated before all had been measured."
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
    return f"Before the servers start, the proofs call {spelt} of {len(first):,} first runs (method: {methods})."


def _openings(run_set: RunSet) -> str:
    first = [run for run in run_set.runs if run.cold]
    opened = [run.manifest.opening for run in first if run.manifest.opening is not None]
    if not opened:
        return "How cold they still were when their windows opened is not known."
    verdicts = [proof.verdict for proof in opened]
    spelt = listed([f"{verdicts.count(verdict):,} {verdict}" for verdict in sorted(set(verdicts))])
    shares = [100 * proof.resident_share for proof in opened if proof.resident_share is not None]
    ends = list(dict.fromkeys(f"{share:.0f}" for share in (min(shares), max(shares)))) if shares else []
    between = f", with {' to '.join(ends)} % of the files in memory" if ends else ""
    return f"When their windows open, they call {spelt} of {len(opened):,}{between}."


def _measured_by(run_set: RunSet) -> str:
    return f"The code that measured is {listed([harness_words(harness) for harness in run_set.harnesses])}."


def _interference(run_set: RunSet) -> str:
    known = [run.manifest.interference for run in run_set.runs if run.manifest.interference is not None]
    foreign = [each.foreign_cores for each in known if each.foreign_cores is not None]
    if not foreign:
        return "What else was at work on the machine is not known of these runs."
    disturbed = [run for run in run_set.runs if run.disturbed]
    again = sum(len(repeat.disturbed) for repeat in run_set.repeats)
    marked = "No run that counts was disturbed"
    if disturbed:
        marked = (
            f"Of the runs that count, {len(disturbed):,} {'is' if len(disturbed) == 1 else 'are'} marked as disturbed"
        )
    repeated = f"; measured once more because of other work: {again:,}, and what came first is kept" if again else ""
    return (
        f"Other programs kept up to {max(foreign):.2f} processors busy in the mean of a window (in the calmest, "
        f"{min(foreign):.2f}). "
        f"{marked}{repeated}."
    )


def _attempts(run_set: RunSet) -> str:
    failures = [failure for repeat in run_set.repeats for failure in repeat.failures if repeat.status == "complete"]
    more = [repeat for repeat in run_set.repeats if repeat.status == "complete" and repeat.failures]
    if not any(repeat.attempts for repeat in run_set.repeats):
        return "How many attempts a series took is not known."
    if not more:
        return "Every series that has its runs got them at the first attempt."
    reasons = list(dict.fromkeys(each.reason or each.status for each in failures))
    return (
        f"More than one attempt was taken by {len(more):,} of {len(run_set.repeats):,} series; attempts that failed or "
        f"were killed: {len(failures):,} ({'; '.join(reasons)})."
    )


def _warm_up(run_set: RunSet) -> str:
    found = [run.manifest.warm_up for run in run_set.runs if run.manifest.warm_up is not None]
    if not found:
        return "Hot runs follow at once, without a warm-up beside the runs before them."
    unsteady = sum(not each.steady for each in found)
    ended = f"{unsteady:,} ended unsteady" if unsteady else "all became steady"
    return (
        f"Before {len(found):,} hot runs the servers were warmed up by uncounted writing, until consecutive stretches "
        f"agreed or time was up, for at most {max(each.seconds for each in found):.1f} s; {ended}."
    )


def _durability(run_set: RunSet) -> str:
    full = dict.fromkeys(
        series.title
        for series in run_set.series
        if any(run.manifest.system.durability_level != DEFAULT_DURABILITY for run in series.runs)
    )
    if not full:
        return "All systems were measured at their default durability, so that they do not promise the same."
    return f"Made to reach the disk with each commit are {listed(list(full))}; all others keep their defaults."


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
