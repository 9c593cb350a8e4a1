"""Computed sentences on the conditions of the runs, and on the uncertainty of their numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from tidemark.analysis.formatting import listed
from tidemark.runs.manifest import FULL_DURABILITY
from tidemark.runs.runset import RunSet
from tidemark.runs.views import harness_words, mixture, unfinished


def setting(run_set: RunSet) -> dict[str, str]:
    """Return the sentences by name."""
    return {
        "repeats": _repeats(run_set),
        "coverage": run_set.coverage,
        "missing": _missing(run_set),
        "oracle": _oracle(run_set),
        "proofs": _proofs(run_set),
        "openings": _openings(run_set),
        "marks": _marks(run_set),
        "measured-by": f"The measuring code is {listed(list(map(harness_words, run_set.harnesses)))}.",
        # Shown first on the first page.
        "mixture": " ".join((*unfinished(run_set), *mixture(run_set))),
        "interference": _interference(run_set),
        "attempts": _attempts(run_set),
        "warm-up": _warm_up(run_set),
        "durability": _durability(run_set),
    }


def repeats(run_set: RunSet) -> int:
    """Return the largest number of repeats of any series."""
    return max(len(series.repeats) for series in run_set.series)


def _repeats(run_set: RunSet) -> str:
    if repeats(run_set) == 1:
        return "Each series is measured once."
    counts = (sum(bool(each.runs) and each.cold_run is None for each in one.repeats) for one in run_set.series)
    rounds = max(counts)
    if rounds and rounds < repeats(run_set):
        said = (
            f"All systems are measured in {rounds:,} rounds, in random order and on the same servers, which are new in "
            f"each {_block(run_set)}, and then once more by themselves, with new servers and a cold start."
        )
        return " ".join((said, *run_set.ended))
    return (
        f"Each series is measured {repeats(run_set):,} times, with new servers and a cold start each time; no series "
        "is repeated before all have been measured."
    )


def _block(run_set: RunSet) -> str:
    blocks = [Counter(each.block for each in series.repeats if each.block) for series in run_set.series]
    size = max((count for found in blocks for count in found.values()), default=1)
    return "round" if size == 1 else f"block of {size} rounds (the first round is a block by itself)"


def _missing(run_set: RunSet) -> str:
    gone: dict[tuple[str, str], list[str]] = {}
    several = len(run_set.stacks) > 1
    for series in run_set.series:
        if not series.runs:
            name = f"{series.title} with {series.stack}" if several else series.title
            gone.setdefault((name, series.missing().rstrip(".")), []).append(series.mode_title)
    spelt = [f"{title} in {listed(sorted(modes))} mode ({reason})" for (title, reason), modes in sorted(gone.items())]
    if not spelt:
        return "Every series of the configuration has its runs."
    return f"These series have no run: {'; '.join(spelt)}."


def _oracle(run_set: RunSet) -> str:
    checked = [run for run in run_set.runs if run.manifest.oracle.applicable]
    wrong = [run.label for run in checked if not run.manifest.oracle.verdict]
    if not checked:
        return "No run could be checked."
    if wrong:
        return f"Of {len(checked):,} checked runs, these do not hold the acknowledged ids: {listed(wrong)}."
    return f"All {len(checked):,} checked runs hold exactly the acknowledged ids."


def _proofs(run_set: RunSet) -> str:
    first = [run for run in run_set.runs if run.cold]
    counts = Counter(run.manifest.cold_proof.verdict for run in first)
    if not first:
        return "No series has a run 0."
    methods = listed(sorted({run.manifest.cold_proof.method for run in first}))
    return (
        f"Before the servers start, the proof (method: {methods}) finds {_counted(counts, len(first), 'first runs')}."
    )


def _counted(counts: Mapping[str, int], total: int, what: str) -> str:
    """Return `all 6 first runs cold`, or `1 of 6 first runs hot and 5 of 6 lukewarm`."""
    if len(counts) == 1:
        return f"{'all ' if total > 1 else ''}{total:,} {what} {next(iter(counts))}"
    (verdict, count), *rest = sorted(counts.items())
    others = [f"{others:,} {other}" for other, others in rest]
    return f"{listed([f'{count:,} of {total:,} {what} {verdict}', *others])}"


def _openings(run_set: RunSet) -> str:
    first = [run for run in run_set.runs if run.cold]
    opened = [run.manifest.opening for run in first if run.manifest.opening is not None]
    if not opened:
        return "How cold they are when their windows open is not known."
    counts = Counter(proof.verdict for proof in opened)
    shares = [100 * proof.resident_share for proof in opened if proof.resident_share is not None]
    ends = list(dict.fromkeys(f"{share:.0f}" for share in (min(shares), max(shares)))) if shares else []
    between = f", with {' to '.join(ends)} % of the files in the page cache" if ends else ""
    return f"When the window opens, the second proof finds {_counted(counts, len(opened), 'first runs')}{between}."


def _interference(run_set: RunSet) -> str:
    known = [run.manifest.interference for run in run_set.runs if run.manifest.interference is not None]
    foreign = [each.foreign_cores for each in known if each.foreign_cores is not None]
    if not foreign:
        return "These runs do not record what else ran on the machine."
    disturbed = [run for run in run_set.runs if run.disturbed]
    again = sum(len(repeat.disturbed) for repeat in run_set.repeats)
    are = "is" if len(disturbed) == 1 else "are"
    marked = f"Of the runs that count, {len(disturbed):,} {are}" if disturbed else "No run that counts is"
    marked += " marked as disturbed"
    repeated = ""
    if again:
        runs = f"{again:,} disturbed run{' was' if again == 1 else 's were'}"
        repeated = f" {runs} measured again; the first measurement is kept, but does not count."
    least, most = (f"{end:.2f}" for end in (min(foreign), max(foreign)))
    cores = most if least == most else f"between {least} and {most}"
    idle = (
        "; servers of other systems, which idle, are among them" if any(each.block for each in run_set.repeats) else ""
    )
    return f"{marked}.{repeated} Averaged over a window, other programs keep {cores} cores busy{idle}."


def _attempts(run_set: RunSet) -> str:
    failures = [failure for repeat in run_set.repeats for failure in repeat.failures if repeat.status == "complete"]
    more = [repeat for repeat in run_set.repeats if repeat.status == "complete" and repeat.failures]
    if not any(repeat.attempts for repeat in run_set.repeats):
        return "The number of attempts per series is not known."
    if not more:
        return "Every complete series succeeded at the first attempt."
    reasons = list(dict.fromkeys(each.reason or each.status for each in failures))
    return (
        f"{len(more):,} of {len(run_set.repeats):,} series took more than one attempt; {len(failures):,} attempts "
        f"failed or were killed ({'; '.join(reasons)})."
    )


def _warm_up(run_set: RunSet) -> str:
    found = [run.manifest.warm_up for run in run_set.runs if run.manifest.warm_up is not None]
    if not found:
        return "Hot runs follow without a separate warm-up."
    unsteady = sum(not each.steady for each in found)
    ended = f"{unsteady:,} ended unsteady" if unsteady else "all became steady"
    return (
        f"Before {len(found):,} hot runs, writes that do not count warm up the servers until consecutive stretches "
        f"agree or the time limit is reached; this takes at most {max(each.seconds for each in found):.1f} s, and "
        f"{ended}."
    )


def _durability(run_set: RunSet) -> str:
    full = dict.fromkeys(
        series.title
        for series in run_set.series
        if any(run.manifest.system.durability_level == FULL_DURABILITY for run in series.runs)
    )
    if not full:
        return "All systems run at their default durability, and these defaults differ."
    return (
        f"{listed(list(full))} {'forces' if len(full) == 1 else 'force'} each commit to the disk; all other systems "
        "run at their default durability."
    )


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
    return f"Warnings of the harness: {'; '.join(spelt)}."
