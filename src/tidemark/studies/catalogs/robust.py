"""Guarantees checked by runs: after kills, and while tables are created, renamed and dropped."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from tidemark.analysis.quantities import Absent
from tidemark.analysis.statistics import at_most
from tidemark.analysis.words import listed, number
from tidemark.runs.run import Run
from tidemark.runs.runset import RunSet, Series
from tidemark.studies.catalogs.outcomes import ACKED, WRONG
from tidemark.studies.catalogs.quantities import CHURN


@dataclass(frozen=True, slots=True)
class Kills:
    """All kills of one server or database in one series. Counts are of requests; `lost` is of entities and updates."""

    series: Series
    run: Run  # the one that the kills followed
    title: str  # of the killed server
    each: tuple[dict[str, Any], ...]
    window: dict[str, Any] | None  # finding on the run's own entities after all kills; None if they could not be read

    @property
    def lost_of_window(self) -> int | None:
        """Lost entities and updates of the run itself; None if they could not be read."""
        return None if self.window is None else sum(self.window[name] for name in ("lost", "lost_updates", "torn"))

    def total(self, name: str) -> int:
        return sum(int(kill[name]) for kill in self.each)

    @property
    def answered_s(self) -> list[float]:
        """Seconds from each restart until a table was read, without restarts after which none was."""
        return [kill["answered_s"] for kill in self.each if kill["answered_s"] is not None]

    @property
    def with_loss(self) -> int:
        """Number of kills after which something was lost or wrong, or nothing could be read any more."""
        return sum(not kill["holds"] for kill in self.each)

    @property
    def window_holds(self) -> bool:
        return self.window is not None and not any(self.window[name] for name in WRONG)

    @property
    def holds(self) -> bool:
        return not self.with_loss and self.window_holds

    @property
    def telling(self) -> int:
        """Number of kills of a server that took writes: one that answers most with errors has little to lose."""
        return sum(int(kill["acknowledged"]) > int(kill["errors"]) for kill in self.each)

    @property
    def at_most(self) -> float:
        """Upper end of a one-sided 95 % interval for the probability that a kill loses something.

        From the kills that could show a loss, and those with a loss.
        """
        return at_most(self.with_loss, max(self.telling, self.with_loss))

    @property
    def is_stuck(self) -> bool:
        """True if it answered again, but refused most of the concurrent writes that followed."""
        return 2 * self.total("again_acked") < self.total("again")

    @property
    def command(self) -> str:
        """Command that repeats the kills."""
        system, series = self.run.manifest.system, self.run.manifest.series
        entry = {} if system.name == system.base else {"like": system.base, **dict(system.options)}
        words = ["studies=[catalogs]", f"protocol={series.protocol}"]
        words.append(f"catalogs.systems={json.dumps({system.name: entry})}")
        return f"./tidemark all --config {' '.join(shlex.quote(word) for word in words)}"


def crashes(run_set: RunSet) -> Iterator[Kills | tuple[Series, str]]:
    """Yield the kills of each series by killed server; for a series without a possible kill, yield the reason."""
    for series in run_set.select(harness=False):
        for run in series.runs:
            found: dict[str, Any] = dict(run.manifest.found).get("crash") or {}
            if "excused" in found:
                yield series, found["excused"]
            kills = found.get("kills", [])
            for title in dict.fromkeys(kill["title"] for kill in kills):
                each = tuple(kill for kill in kills if kill["title"] == title)
                yield Kills(series, run, title, each, found["window"])


def crash_sentence(run_set: RunSet) -> str:
    """Return sentences on what exists after kills, and the bound on a loss. Raises Absent if nothing was killed."""
    kills = [each for each in crashes(run_set) if isinstance(each, Kills)]
    if not kills:
        raise Absent("no server was killed")
    said = f"While users write, a server or its database is killed {sum(len(each.each) for each in kills):,} times."
    said += "".join(f" {_loss(each)}" for each in kills if not each.holds)
    said += "".join(f" {_stuck(each)}" for each in kills if each.is_stuck)
    kept = [f"{each.series.title} ({each.title}: {number(each.at_most, 2)})" for each in kills if each.holds]
    if kept:
        said += (
            f" All that was acknowledged is there in {listed(kept)}; in brackets, what was killed, and the upper "
            "bound of the probability of a loss after that many kills without one (95 %)."
        )
    seconds = [second for each in kills for second in each.answered_s]
    if seconds:
        said += f" After a new start, it answers within {number(min(seconds), 2)} to {number(max(seconds), 2)} s."
    return said


def _loss(kills: Kills) -> str:
    after = f"{kills.with_loss:,} of {len(kills.each):,} kills of {kills.title}"
    gone = kills.total("lost") + (kills.lost_of_window or 0)
    what = f"{gone:,} acknowledged entities and updates are lost"
    if not gone:
        is_back = len(kills.answered_s) == len(kills.each)
        what = "entities are not as they were" if is_back else "it does not answer again"
    return f"{kills.series.title} does not hold: after {after}, {what}. To repeat it: {kills.command}."


def _stuck(kills: Kills) -> str:
    said = (
        f"{kills.series.title} reads, but takes few writes after a new start of {kills.title}: of "
        f"{kills.total('again'):,} at once, {kills.total('again_acked'):,} succeed"
    )
    less = f"; only {kills.telling:,} of its {len(kills.each):,} kills could show a loss"
    return f"{said}{less if kills.telling < len(kills.each) else ''}."


def churn_sentence(run_set: RunSet) -> str:
    """Return sentences on renames and drops, and on repeated names in listings. Raises Absent if there were none."""
    asked = done = listings = twice = undead = 0
    for run in (run for series in run_set.select(harness=False) for run in series.runs):
        churned = np.isin(run.words("part"), CHURN.parts)
        kind, outcome = (run.words(name)[churned] for name in ("kind", "outcome"))
        chosen = np.isin(kind, ("rename table", "drop table"))
        asked += int(chosen.sum())
        done += int((outcome[chosen] == ACKED).sum())
        listings += int((kind == "list tables").sum())
        twice += int((run.column("doubled")[churned] > 0).sum())
        undead += dict(run.manifest.found)["oracle"].get("undead", 0)
    if not asked:
        raise Absent("no window had tables that come and go")
    return (
        f"While tables come and go, {done:,} of {asked:,} renames and drops succeed. Under a name that they no longer "
        f"have, {undead or 'no':} tables are found afterwards, and {twice or 'none':} of {listings:,} listings show a "
        "name twice."
    )
