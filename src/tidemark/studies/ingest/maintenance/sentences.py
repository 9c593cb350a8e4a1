"""Sentences of the chapter on maintenance during writes, computed from runs."""

from __future__ import annotations

from contextlib import suppress

from tidemark.analysis.prose import SentenceWriter
from tidemark.analysis.quantities import Absent
from tidemark.analysis.statistics import Estimate
from tidemark.analysis.words import estimate_text, listed, number
from tidemark.runs.runset import Series
from tidemark.studies.assembly import Written
from tidemark.studies.ingest.maintenance.kept import (
    Kept,
    failed_calls,
    kept_of,
    pairs,
    round_s,
    slowed,
    words_of,
)


class Maintaining(SentenceWriter):
    def sentences(self) -> dict[str, Written]:
        """Return all sentences by name."""
        said = (self.held, self.slowed, self.calls, self.files, self.reads)
        return {f"ingest-maintenance-{write.__name__}": write for write in said}

    def _maintained(self) -> list[tuple[list[Kept], list[Kept]]]:
        """Return the runs with maintenance and those of the same system without; raise Absent if there are none."""
        found = [(kept_of(own), kept_of(other) if other else []) for own, other in pairs(self.run_set) if own.runs]
        if not found:
            raise Absent("no table was maintained while it was written to")
        return found

    def wrong(self) -> str:
        """Return the sentence on tables that maintenance breaks; raise Absent if all hold."""
        said = []
        for kept, control in self._maintained():
            if not all(each.is_exact for each in kept):
                alone = f" (without maintenance: {words_of(control)})" if control else ""
                said.append(f"{_title(kept)}: {words_of(kept)}{alone}")
        if not said:
            raise Absent("all tables hold")
        return f"Maintenance during writes breaks what was acknowledged: {'; '.join(said)}."

    def held(self) -> str:
        """Return the sentences on the oracle's verdict on each table."""
        held = [_title(kept) for kept, _ in self._maintained() if all(each.is_exact for each in kept)]
        said = [f"With maintenance, every acknowledged row is there once in {listed(held)}."] if held else []
        with suppress(Absent):
            said.append(self.wrong())
        return " ".join(said)

    def slowed(self) -> str:
        """Return the sentence on median and p99 of commits during a call over those of commits outside all calls."""
        parts, longer, told = [], 0, 0
        for kept, _ in self._maintained():
            with suppress(Absent):
                half = slowed(kept, 0.5).estimate("x")
                parts.append(f"{estimate_text(half)}{_tail(kept)} ({_title(kept)})")
                longer, told = longer + half.is_above(1), told + 1
        if not parts:
            raise Absent("no table that holds had commits both during maintenance and without it")
        return (
            "While a call of maintenance lasts, the median commit takes this multiple of its time between calls (p99 "
            f"in brackets): {listed(parts)}. By their intervals, it is longer in {longer} of {told}."
        )

    def calls(self) -> str:
        """Return the sentence on the duration of rounds during writes, and on refused calls."""
        parts = []
        for kept, _ in self._maintained():
            refused, failed = failed_calls(kept)
            count = sum(len(each.calls) for each in kept)
            ended = f"{refused + failed:,} of {count:,} calls refused or failed"
            with suppress(Absent):
                parts.append(f"{estimate_text(round_s(kept).estimate('s'))} ({_title(kept)}; {ended})")
        if not parts:
            raise Absent("no round of maintenance ended without an error on a table that holds")
        return f"A round of maintenance during writes takes, in the median: {listed(parts)}."

    def files(self) -> str:
        """Return the sentence on data files after the window, with and without maintenance."""
        parts = []
        for kept, control in self._maintained():
            if control:
                own, other = (each[-1].run.footprint.data_files for each in (kept, control))
                parts.append(f"{own:,} with maintenance, {other:,} without ({_title(kept)})")
        if not parts:
            raise Absent("no table was also left without maintenance")
        return f"Data files on the disk after a window of the same length: {'; '.join(parts)}."

    def reads(self) -> str:
        """Return the sentence on the results of a client that counts rows."""
        count = failed = 0
        who = []
        for kept, _ in self._maintained():
            for each in kept:
                count, failed = count + each.reads.count, failed + each.reads.failed
                if each.reads.failed or each.reads.backwards:
                    went = f"{each.reads.backwards:,} saw fewer rows than one before"
                    who.append(f"{_title(kept)}: {each.reads.failed:,} of {each.reads.count:,} failed, {went}")
        said = f"A client counted all rows {count:,} times during maintenance, and {failed:,} of these reads failed"
        return f"{said}{f' ({"; ".join(who)})' if who else ''}."


def _title(kept: list[Kept]) -> str:
    series: Series = kept[0].series
    return series.title


def _tail(kept: list[Kept]) -> str:
    with suppress(Absent):
        tail: Estimate = slowed(kept, 0.99).estimate("x")
        return f" (p99 {number(tail.value, 3)} ×)"
    return ""
