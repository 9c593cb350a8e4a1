"""Summary answers in a few sentences, for the head of the report and for the terminal after a measurement."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tidemark.analysis.formatting import estimate_text, listed
from tidemark.analysis.statistics import BootstrapEstimate
from tidemark.results.report.summary_table import Group, Row, SummaryMetric

BEST = "best"
LEVEL = 0.95  # simultaneous confidence level of all comparisons of an answer
CLOSE = 0.05
LINES = 2  # the questions on single and on batched writes


def answers(group: Group, questions: Sequence[SummaryMetric]) -> list[dict[str, Any]]:
    """Return, for each headline question, the best or worst system, its value, and the systems tied with it."""
    found = []
    for place, question in enumerate(questions):
        if question.asks is not None and (ranked := group.ranked(questions, place)):
            best = question.extreme == BEST
            found.append({"key": question.key, "title": question.asks, "best": best, **_answer(question, ranked)})
    return found


def _answer(question: SummaryMetric, ranked: Sequence[tuple[Row, BootstrapEstimate]]) -> dict[str, str]:
    ordered = list(ranked) if question.extreme == BEST else list(reversed(ranked))
    (first, answer), others = ordered[0], ordered[1:]
    estimate = answer.estimate(question.unit)
    # The extreme of many is partly due to chance: with more comparisons, intervals must be wider (Bonferroni).
    level = 1 - (1 - LEVEL) / len(ranked)
    if question.signed and not answer.estimate(question.unit, level).is_above(0):
        return {"text": question.none, "apart": ""}
    same = [row.title for row, other in others if not _differ(question, answer, other, level)]
    note = question.noted(first.asked)
    allowing = f" (as far as {len(ranked):,} systems compared at once can tell)" if len(ranked) > 2 else ""
    apart = f"no difference was shown between it and {listed(same)}{allowing}" if same else ""
    return {
        "text": f"{first.title}: {estimate_text(estimate)}{f' ({note})' if note else ''}",
        "apart": apart if others else "no other system was measured",
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
    """Return three lines for a terminal: the best systems for the first two questions, and the ties.

    `repeated`: True if intervals cover the variance between repeats of a series. Empty if there is no answer.
    """
    chosen = [each for each in found if each["best"]][:LINES]
    apart = [f"{each['title'][0].lower()}{each['title'][1:]}: {each['apart']}" for each in chosen if each["apart"]]
    said = "; ".join(apart) or "nothing: each differs from all others by more than their intervals"
    said += "" if repeated else "; each was measured once, and how repeats differ is not known"
    lines = [f"{each['title']}: {each['text']}." for each in chosen]
    return [*lines, f"Not distinguishable: {said}{' (SYNTHETIC dataset)' if synthetic else ''}."] if chosen else []
