"""Comparison of software stacks for the paper: sentences and a table, all based on intervals."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from tidemark.analysis.formatting import MissingCell, attempt, comparison, estimate_text, listed
from tidemark.analysis.measures import Measures
from tidemark.analysis.metrics import NotAvailable
from tidemark.results.claims.claims import WITHOUT_A_VALUE
from tidemark.results.claims.judge import counts_text, needs_label
from tidemark.runs.runset import Series
from tidemark.runs.views import counterparts, in_order, modes

# Descriptions of declared capabilities; those without an entry are shown by name.
ABILITIES = {
    "read-by-others": "clients other than the one that wrote a table can read it",
    "commit-retry": "a commit that loses against another writer's is retried",
    "infinity": "infinite numbers can be stored",
    "inlining": "rows can be kept in the catalog",
    "flush": "inlined rows can be flushed",
    "merge": "small files can be merged",
    "threads": "the number of threads can be set",
}
LAKE = "DuckLake version"
NOT_TOLD = "not "  # how a version begins that was not reported


class StackWriter:
    """Writer of sentences that compare several stacks; for a single stack, they only name it."""

    def __init__(self, measures: Measures, claims: Mapping[str, Any]) -> None:
        """Take `claims` from claims.json."""
        self._measures = measures
        self._leading = measures.quantities.leading
        self._claims = claims
        self._stacks = in_order(measures.run_set)

    @property
    def several(self) -> bool:
        return len(self._stacks) > 1

    def sentences(self) -> dict[str, str]:
        """Return all sentences by name, empty if there is nothing to compare."""
        return {
            "stacks": self.versions(),
            "stacks-scope": self.scope(),
            "stacks-abilities": self.abilities(),
            "stacks-claims": self.verdicts(),
            "stacks-counts": self.counts(),
        }

    def table(self) -> dict[str, Any]:
        """Return system, mode, both medians, their ratio and its verdict, as text."""
        title, subjects = self._leading.title, self._leading.subjects
        heads = ["System", "Mode", f"{title}, then", f"{title}, now", "Now / then", f"{subjects} now"]
        run_set, rows = self._measures.run_set, []
        for then, now in (pair for mode in modes(run_set) for pair in counterparts(run_set, mode)):
            compare = partial(self._measures.ratio, self._leading, now, then)
            ratio = attempt("x", compare)
            name = then.title if len(self._stacks) == 2 else f"{then.title}, {now.stack}"
            medians = [self._median(series) for series in (then, now)]
            word = comparison(compare, *self._leading.words) or "not comparable"
            text = ratio.reason if isinstance(ratio, MissingCell) else estimate_text(ratio)
            rows.append([name, then.mode_title, *medians, text, str(word)])
        return {"heads": heads, "rows": rows}

    # Sentences

    def versions(self) -> str:
        """Return the versions used with each stack, as reported by the programs."""
        asked = {stack: self._asked(stack) for stack in self._stacks}
        names = sorted({name for found in asked.values() for name in found}, key=str.lower)
        if not self.several:
            found = asked[self._stacks[0]]
            return f"The runs use one software stack, '{self._stacks[0]}': {spelt(found, names)}."
        differing = [name for name in names if len({found.get(name) for found in asked.values()}) > 1]
        same = [name for name in names if name not in differing]
        parts = [f"'{stack}' ({spelt(found, differing)})" for stack, found in asked.items()]
        whole = f"The runs use {len(self._stacks)} software stacks: {listed(parts)}."
        return f"{whole} All of them use {spelt(asked[self._stacks[0]], same)}." if same else whole

    def scope(self) -> str:
        """Return a sentence naming the stack of values without a stack label."""
        if not needs_label(self._stacks):
            return ""
        also = " A later section compares it with the other stacks." if self.several else ""
        return f"Values are those of the software stack '{self._stacks[0]}' unless the text names another one.{also}"

    def abilities(self) -> str:
        """Return sentences on capabilities that systems gain or lose with later stacks, compared with the first."""
        made = []
        first = self._declared(self._stacks[0])
        for stack in self._stacks[1:]:
            gained: list[str] = []
            lost: list[str] = []
            for title, now in self._declared(stack).items():
                if title in first:
                    gained += [f"{title}: {ABILITIES.get(each, each)}" for each in sorted(now - first[title])]
                    lost += [f"{title}: {ABILITIES.get(each, each)}" for each in sorted(first[title] - now)]
            none = f"With '{stack}', no system declares a capability that it lacks with '{self._stacks[0]}'."
            made.append(f"Systems declare new capabilities with '{stack}': {'; '.join(gained)}." if gained else none)
            if lost:
                made.append(f"Systems no longer declare with '{stack}': {'; '.join(lost)}.")
        return " ".join(made)

    def verdicts(self) -> str:
        """Return sentences on the claims whose verdict changes with another stack, and the number that keep it."""
        made = []
        rows = self._claims["claims"]
        for place, stack in enumerate(self._stacks[1:]):
            changed: dict[tuple[str, str], list[str]] = {}
            untested = 0
            for row in rows:
                then, now = row["verdict"], row["others"][place]["verdict"]
                if then != now:
                    changed.setdefault((then, now), []).append(row["id"])
                untested += then == now and now in WITHOUT_A_VALUE
            same = len(rows) - sum(map(len, changed.values()))
            whole = (
                f"Of {len(rows):,} claims, {same:,} have the same verdict with '{stack}' as with '{self._stacks[0]}'"
            )
            whole += f"; {untested:,} of these are tested with neither" if untested else ""
            parts = [
                f"from {then} to {now} for {_which(then, now, ids)}" for (then, now), ids in sorted(changed.items())
            ]
            made.append(f"{whole}. The verdict changes {'; '.join(parts)}." if changed else f"{whole}.")
        return " ".join(made)

    def counts(self) -> str:
        """Return the verdict counts of each stack, if labels are needed; for a single stack, only its name."""
        counted = self._claims["stacks"]
        if not needs_label(self._stacks):
            return ""
        if len(counted) == 1:
            return f"These verdicts are those of runs with the software stack '{counted[0]['stack']}'."
        others = [f"with '{each['stack']}', {counts_text(each['counts'])}" for each in counted[1:]]
        return f"These counts are those of the software stack '{counted[0]['stack']}'; {'; '.join(others)}."

    # Inputs of the sentences

    def _median(self, series: Series) -> str:
        try:
            return estimate_text(self._measures.hot(self._leading, series).estimate(self._leading.unit))
        except NotAvailable:
            return "–"

    def _asked(self, stack: str) -> dict[str, str]:
        """Return versions by name, without DuckDB extensions, whose version is an uninformative commit hash."""
        found: dict[str, set[str]] = {}
        names: dict[str, str] = {}  # client and harness may spell a library's name differently
        for run in self._measures.run_set.runs_with(stack):
            lake = [("DuckLake", value) for key, value in run.manifest.system.settings if key == LAKE]
            for name, version in (*run.manifest.versions, *lake):
                if not name.startswith("duckdb-") and not version.startswith(NOT_TOLD):
                    found.setdefault(names.setdefault(name.lower(), name), set()).add(version)
        return {name: " or ".join(sorted(versions)) for name, versions in found.items()}

    def _declared(self, stack: str) -> dict[str, frozenset[str]]:
        """Return the capabilities of each system by title, as recorded by its runs."""
        found: dict[str, frozenset[str]] = {}
        for run in self._measures.run_set.runs_with(stack):
            system = run.manifest.system
            found[system.title] = found.get(system.title, frozenset()) | set(system.capabilities)
        return found


def _which(then: str, now: str, ids: list[str]) -> str:
    """Return the ids of changed claims if both stacks tested them, else their number (the ledger lists them)."""
    if then in WITHOUT_A_VALUE or now in WITHOUT_A_VALUE:
        return f"{len(ids):,} claim{'' if len(ids) == 1 else 's'}"
    return listed(ids)


def spelt(versions: Mapping[str, str], names: list[str]) -> str:
    """Return `DuckDB 1.4.4 and Kafka 4.1.0`: the known versions among `names`, or `no known version`."""
    return listed([f"{name} {versions[name]}" for name in names if name in versions]) or "no known version"
