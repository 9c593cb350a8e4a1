"""The head of the report: what to read before any number (origin and limits), and answers in a few sentences.

The answers are shown in the terminal, too, after a measurement.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

from tidemark import __version__
from tidemark.analysis.formatting import estimate_text, listed
from tidemark.analysis.measures import Measures
from tidemark.analysis.metrics import HIGHER, NotAvailable
from tidemark.analysis.statistics import BootstrapEstimate
from tidemark.results.report.summary_table import Group, Row, Subject, SummaryMetric, asking, heading
from tidemark.runs.manifest import FIRST_STUDY
from tidemark.runs.runset import ASSUMED, RunSet
from tidemark.runs.views import dataset_label, harness_words, machine_words, measured, mixture, modes, unfinished


def read_first(run_set: RunSet, studies: Sequence[Measures]) -> list[dict[str, Any]]:
    """Return entries of label, text and warning flag, in display order."""
    floors = " ".join(sentence for measures in studies for sentence in _noise_floor(measures))
    synthetic = any(dataset.synthetic for dataset in run_set.datasets)
    harnesses = "; ".join(harness_words(each) for each in run_set.harnesses) or "no run"
    found = [
        *(("Not finished", sentence, True) for sentence in unfinished(run_set)),
        *([] if run_set.is_repeated else [("Measured once", f"{ONCE[:1].upper()}{ONCE[1:]}.", True)]),
        *([("Measured", when, False)] if (when := measured(run_set)) else []),
        ("Dataset", dataset_label(run_set), synthetic),
        ("Machine", "; ".join(machine_words(machine) for machine in run_set.machines) or "no run", False),
        ("Protocol", _protocol(run_set), False),
        *(("Rounds", sentence, False) for sentence in run_set.ended),
        ("What bounds the numbers", _bounds(run_set, studies), False),
        *([("Noise floor", floors, False)] if floors else []),
        ("Marks", *_marks(run_set)),
        ("Failures", *_failures(run_set)),
        *(("Does not belong together", sentence, True) for sentence in mixture(run_set)),
        *([("Old runs", OLD_RUNS, True)] if None in run_set.harnesses else []),
        ("Measured by", f"{harnesses}; page made by Tidemark {__version__}", False),
    ]
    return [{"label": label, "text": text, "warning": warning} for label, text, warning in found]


OLD_RUNS = (
    "Runs of version 1 are among these: which code measured them is not known, and their disk quantities are left "
    "out, since the stream's log was charged to the systems."
)


def _protocol(run_set: RunSet) -> str:
    names = ", ".join(dict.fromkeys(series.protocol for series in run_set.series))
    windows = dict.fromkeys(
        run.manifest.window_text for run in run_set.runs if not run.manifest.system.is_null_baseline
    )
    spelt = " or ".join(windows) or "none measured"
    operations = sum(run.manifest.operations for run in run_set.runs)
    return (
        f"{names}: {len(run_set.runs):,} runs of {len(run_set.repeats):,} series, windows of {spelt}, "
        f"{operations:,} operations timed"
    )


def _bounds(run_set: RunSet, studies: Sequence[Measures]) -> str:
    """Return sentences on what intervals cover, and on the throughput of the harness without a system."""
    limits = []
    for measures in studies:
        rates = [each for each in measures.quantities.headline if each.better == HIGHER]
        for series in (each for mode in modes(measures.run_set) for each in measures.run_set.select(mode=mode)):
            for rate in rates if series.is_null_baseline else ():
                with suppress(NotAvailable):
                    found = estimate_text(measures.hot(rate, series).estimate(rate.unit))
                    limits.append(f"{series.mode_title} {found}")
    harness = f" The measuring program alone (null, which stores nothing) reaches {', '.join(limits)}."
    told = f"Intervals are 95 %. {run_set.coverage}{harness if limits else ''}"
    alone = all(series.study == FIRST_STUDY for series in run_set.series)
    return f"{told} {'One client writes to one table on' if alone else 'Clients and servers share'} one machine."


def _noise_floor(measures: Measures) -> Iterator[str]:
    """Yield a sentence for each mode in which a system was measured under two names."""
    for mode in modes(measures.run_set):
        floors = []
        for quantity in measures.quantities.headline:
            with suppress(NotAvailable):
                floor = measures.noise_floor(quantity, mode).estimate("%")
                floors.append(f"{quantity.noun} {estimate_text(floor)}")
        if floors:
            name = measures.run_set.select(mode=mode)[0].mode_title
            yield (
                f"One system under two names ({name}) differs by at most, at 95 %: {'; '.join(floors)}. Smaller "
                "differences of two systems need not be theirs."
            )


def _marks(run_set: RunSet) -> tuple[str, bool]:
    disturbed = sum(bool(run.disturbed) for run in run_set.runs)
    other = sum(bool(set(run.manifest.marks) - set(run.disturbed)) for run in run_set.runs)
    kept = len(run_set.kept_runs)
    text = f"{disturbed:,} of {len(run_set.runs):,} counted runs were disturbed by other work on the machine"
    text += f"; {other:,} carry another mark" if other else ""
    return text + (f"; {kept:,} more were measured again and are kept alongside" if kept else ""), False


def _failures(run_set: RunSet) -> tuple[str, bool]:
    ended = [series for series in run_set.series if series.status != "complete"]
    attempts = sum(len(repeat.failures) for repeat in run_set.repeats)
    if not ended:
        earlier = f"; {attempts:,} earlier attempts failed, see the runs" if attempts else ""
        wrong = _wrong(run_set)
        held = wrong or "none: every series is complete and held all that it acknowledged"
        return f"{held}{earlier}", bool(wrong)
    text = "; ".join(f"{each.title}, {each.mode_title}: {each.status}: {each.missing()}" for each in ended)
    return text, any(each.status == "failed" for each in ended)


def _wrong(run_set: RunSet) -> str:
    """Return a sentence on counted runs whose tables do not hold what was acknowledged, by system, or empty."""
    found = [(series.title, run) for series in run_set.series for run in series.runs if run.manifest.oracle.is_wrong]
    if not found:
        return ""
    titles = ", ".join(dict.fromkeys(title for title, _ in found))
    many = f"{len(found):,} runs do not hold what they" if len(found) > 1 else "1 run does not hold what it"
    return f"every series is complete, but {many} acknowledged: {titles}"


ONCE = f"each was measured once, and intervals {ASSUMED}"
BEST = "best"
LEVEL = 0.95  # simultaneous confidence level of all comparisons of an answer
CLOSE = 0.05
LINES = 2  # the questions on single and on batched writes
TIED = "tied means that no difference was found, all systems compared at once"


def answers(group: Group, questions: Sequence[SummaryMetric]) -> list[dict[str, Any]]:
    """Return, for each headline question, the best or worst system, its value, and the systems tied with it."""
    found = []
    for place, question in enumerate(questions):
        if question.asks is not None and (ranked := group.ranked(questions, place)):
            best = question.extreme == BEST
            answer = _answer(question, ranked)
            if lacking := group.without(place):
                answer["text"] += f" (no value: {listed(lacking)})"
            found.append({"key": question.key, "title": question.asks, "best": best, **answer})
    return found


def _answer(question: SummaryMetric, ranked: Sequence[tuple[Row, BootstrapEstimate]]) -> dict[str, Any]:
    ordered = list(ranked) if question.extreme == BEST else list(reversed(ranked))
    (first, answer), others = ordered[0], ordered[1:]
    estimate = answer.estimate(question.unit)
    # The extreme of many is partly due to chance: with more comparisons, intervals must be wider (Bonferroni).
    level = 1 - (1 - LEVEL) / len(ranked)
    least = question.at_least
    if least is not None:
        # A lost row was seen, however wide the interval of several runs. A slope can be chance: its interval decides.
        seen = [each.value if question.signed else each.estimate(question.unit, level).low for _, each in ranked]
        if not any(value is not None and value > least for value in seen):
            return {"text": question.none, "apart": "", "tied": []}
    same = [row.title for row, other in others if not _differ(question, answer, other, level)]
    note = question.noted(first.asked)
    allowing = f" (as far as {len(ranked):,} systems compared at once can tell)" if len(ranked) > 2 else ""
    apart = f"not distinguishable from {listed(same)}{allowing}" if same else ""
    return {
        "text": f"{first.title}: {estimate_text(estimate)}{f' ({note})' if note else ''}",
        "apart": apart if others else "no other system has a value",
        "tied": same,
    }


def _differ(question: SummaryMetric, one: BootstrapEstimate, other: BootstrapEstimate, level: float) -> bool:
    """Return True if the interval of their comparison excludes equality.

    Counts of a single run have no interval; they are equal if they are within CLOSE.
    """
    ratio, same = question.worse(one, other).estimate("", level), 0.0 if question.signed else 1.0
    if ratio.low is None:
        return abs(ratio.value - same) > CLOSE
    return ratio.is_above(same) or ratio.is_below(same)


def in_lines(found: Sequence[dict[str, Any]], synthetic: bool, repeated: bool) -> list[str]:
    """Return three lines for a terminal: the best systems for the first two questions, with those tied with them.

    `repeated`: True if intervals cover the variance between repeats of a series. Empty if there is no answer.
    """
    chosen = [each for each in found if each["best"]][:LINES]
    ties = [f", tied with {listed(each['tied'])}" if each["tied"] else "" for each in chosen]
    lines = [f"{each['title']}: {each['text']}{tie}." for each, tie in zip(chosen, ties, strict=True)]
    alone = [each for each in chosen if each["apart"] and not each["tied"]]
    notes = [f"{each['title'][0].lower()}{each['title'][1:]}: {each['apart']}" for each in alone]
    notes += [TIED] if any(each["tied"] for each in chosen) else []
    text = "; ".join(notes) or "every other system differs from these by more than the intervals"
    text += "" if repeated else f"; {ONCE}"
    return [*lines, f"Compared: {text}{' (SYNTHETIC dataset)' if synthetic else ''}."] if chosen else []


def of_one(subjects: Sequence[Subject], synthetic: bool, repeated: bool) -> list[str]:
    """Return lines for a terminal with the usual numbers of each system if none can be compared; else none.

    A study compares the systems of a group, so that is the case if no group has two.
    """
    lines = []
    for subject in asking(subjects):
        for group in subject.groups:
            rows = [row for row in group.rows if not row.outside]
            if len(rows) > 1:
                return []
            for row in rows:
                found = [
                    f"  {heading(question)}: {estimate_text(answer.estimate(question.unit))}"
                    for question, answer in zip(subject.questions, row.answers, strict=True)
                    if question.usual and isinstance(answer, BootstrapEstimate)
                ]
                lines += [f"{row.title} ({subject.study}, stack {group.stack}):", *found] if found else []
    told = f"Not compared: nothing else was measured under the same conditions{'' if repeated else f'; {ONCE}'}"
    return [*lines, f"{told}{' (SYNTHETIC dataset)' if synthetic else ''}."] if lines else []
