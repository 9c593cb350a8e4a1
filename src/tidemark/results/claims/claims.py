"""Claims of a study: read from its claims file, judged by Tidemark's intervals and never by point estimates."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import yaml

from tidemark.analysis.formatting import with_unit
from tidemark.analysis.metrics import MetricSet
from tidemark.analysis.statistics import Estimate
from tidemark.errors import AnalysisError
from tidemark.results.claims.claim_data import ClaimData
from tidemark.results.claims.measures import Measure, MeasureCall
from tidemark.runs.serde import Fields

REPRODUCED, NOT_REPRODUCED = "reproduced", "not reproduced"
INCONCLUSIVE = "inconclusive"
UNTESTED = "not tested yet"  # by these runs: those of the claim's own command can
NOT_TESTABLE = "not testable here"  # by no run
VERDICTS = (REPRODUCED, NOT_REPRODUCED, INCONCLUSIVE, UNTESTED, NOT_TESTABLE)
WITHOUT_A_VALUE = (UNTESTED, NOT_TESTABLE)
UNJUDGED = ("not-here", "beside")  # measures that judge nothing: the second gives a number for comparison
PRINTED = "printed-"  # name prefix of measures that use only a publication's printed numbers, and no run
DIRECTIONS = ("above", "below", "between")
QUOTATION = re.compile(r'"([^"]+)"')
PLACES = (
    "abstract",
    "thesis",
    *(f"{part} N" for part in ("section", "chapter", "table", "figure", "footnote", "page")),
)
_NUMBERED = r'(?:section|chapter|table|figure|footnote|page|appendix) (?:[A-Z\d]+(?:\.\d+)*(?: "[^"]+")?|"[^"]+")'
PLACE = re.compile(rf"(?:abstract|thesis|{_NUMBERED})(?:, (?:abstract|{_NUMBERED}))*")


@dataclass(frozen=True, slots=True)
class Region:
    """Interval in which a value must lie, ends included."""

    low: float
    high: float

    def judge(self, ours: Estimate) -> str:
        """Return REPRODUCED if `ours` lies inside, NOT_REPRODUCED if it lies outside, else INCONCLUSIVE."""
        if ours.low is None or ours.high is None:
            return INCONCLUSIVE
        if self.low <= ours.low and ours.high <= self.high:
            return REPRODUCED
        return NOT_REPRODUCED if ours.high < self.low or ours.low > self.high else INCONCLUSIVE


@dataclass(frozen=True, slots=True)
class Criterion:
    """Criterion for "reproduced": a direction and, if the publication states a size, a factor around that size."""

    direction: Region
    size: Region | None
    words: str

    def judge(self, ours: Estimate) -> tuple[str, str, str | None]:
        """Return the verdict and its parts: that on the direction, and that on the size or None without a size."""
        direction = self.direction.judge(ours)
        size = self.size.judge(ours) if self.size else None
        worst = (each for each in (NOT_REPRODUCED, INCONCLUSIVE) if each in (direction, size))
        return next(worst, REPRODUCED), direction, size


@dataclass(frozen=True, slots=True)
class Published:
    """Published result from another machine: a value, a range, a bound (only `low` or `high`), or words.

    Text between quotation marks in `text` is quoted from `place` of the publication; the rest is Tidemark's wording.
    `source` names another publication than the study's, with its address and date.
    """

    value: float | None
    low: float | None
    high: float | None
    unit: str
    text: str
    place: str
    source: str = ""

    @classmethod
    def read(cls, f: Fields) -> Published:
        """Return the checked content of a claims file; raise AnalysisError, naming the key, if it is malformed."""
        allowed = [field.name for field in fields(cls)]
        if unknown := set(f.names()) - set(allowed):
            raise f.wrong(min(unknown), f"no such key, but {', '.join(allowed)}")
        value, low, high = (f.maybe_number(key) for key in ("value", "low", "high"))
        text, place = f.text("text"), f.text("place")
        if value is not None and (low, high) != (None, None):
            raise f.wrong("value", "either a value, or a range by 'low' and 'high'")
        if low is not None and high is not None and low >= high:
            raise f.wrong("low", "a number below 'high'")
        if text.count('"') % 2:
            raise f.wrong("text", "quotation marks in pairs")
        if (value, low, high) == (None, None, None) and not QUOTATION.search(text):
            raise f.wrong("text", "a quotation between quotation marks, as there is no 'value', 'low' or 'high'")
        if not PLACE.fullmatch(place):
            raise f.wrong("place", f"such as 'section 5.1.1, table 5.1'; each part one of {', '.join(PLACES)}")
        return cls(value, low, high, f.text("unit", ""), text, place, f.text("source", ""))

    @property
    def origin(self) -> str:
        """Place in the publication, followed by the publication if it is not the study's."""
        return f"{self.place}, {self.source}" if self.source else self.place

    @property
    def shown(self) -> str:
        """Number, range or bound with its unit, or the text if the publication states only words."""
        if self.value is not None:
            return with_unit(_plain(self.value), self.unit)
        if self.low is not None and self.high is not None:
            return with_unit(f"{_plain(self.low)} to {_plain(self.high)}", self.unit)
        if self.low is not None:
            return f"at least {with_unit(_plain(self.low), self.unit)}"
        return self.text if self.high is None else f"at most {with_unit(_plain(self.high), self.unit)}"


@dataclass(frozen=True, slots=True)
class Claim:
    id: str
    section: str
    statement: str
    published: Published
    measure: MeasureCall
    criterion: Criterion
    shown: tuple[str, ...]
    sweeps: tuple[str, ...]
    window_seconds: float | None  # shortest window that can show it
    settings: tuple[tuple[str, Any], ...] = ()  # keys of the study's section, with the publication's values
    config: tuple[tuple[str, Any], ...] = ()  # more keys that its test alone sets
    differs: str = ""  # what Tidemark's method changes about this claim; empty if it measures the same

    @property
    def in_words(self) -> str:
        """Statement, followed by its publication if it is not the study's, and by what Tidemark's method changes."""
        source = f" From {self.published.source}." if self.published.source else ""
        return f"{self.statement}{source}" + (f" *Here:* {self.differs}" if self.differs else "")

    @property
    def is_judged(self) -> bool:
        """Return False if no run can judge the claim: its command only gives the study's numbers for comparison."""
        return self.measure.name not in UNJUDGED

    @property
    def needs_no_run(self) -> bool:
        """Return True if the claim only compares a publication's words with its own numbers."""
        return self.measure.name.startswith(PRINTED)


@dataclass(frozen=True, slots=True)
class ClaimSet:
    """Claims of a study, with everything needed to test them.

    `evidence` selects the valid runs, and `remarks` are printed above the ledger. `rates` are estimated rows per
    second, by mode, for systems never measured here. `set_up_bytes` is the disk space used before any measurement:
    environments, jars, tools and generated data of the systems that are measured by default.
    """

    study: str
    title: str  # of the publication
    path: Path
    quantities: MetricSet
    measures: Mapping[str, Measure]
    claim_data: type[ClaimData]
    rates: Mapping[str, float] = field(default_factory=dict)
    remarks: tuple[str, ...] = ()
    set_up_bytes: float = 2e9


def load_claims(book: ClaimSet) -> tuple[Claim, ...]:
    """Return the claims in file order; raise AnalysisError, naming file and claim, if one is malformed."""
    path = book.path
    try:
        items = yaml.load(path.read_text(), yaml.CSafeLoader)
    except (OSError, yaml.YAMLError) as error:
        raise AnalysisError(f"{path}: cannot be read as YAML: {error}") from error
    if not isinstance(items, list):
        raise AnalysisError(f"{path}: found {type(items).__name__}; allowed: a list of claims")
    claims: dict[str, Claim] = {}
    for place, item in enumerate(items):
        if not isinstance(item, dict):
            raise AnalysisError(f"{path}: claim {place + 1}: found {item!r}; allowed: an object")
        claim = _claim(item, book, f"{path}: claim '{item.get('id', place + 1)}'")
        if claim.id in claims:
            raise AnalysisError(f"{path}: claim '{claim.id}': found twice; allowed: each id once")
        claims[claim.id] = claim
    return tuple(claims.values())


def _claim(item: Mapping[str, Any], book: ClaimSet, source: str) -> Claim:
    f = Fields(source, item)
    known = {"id", "section", "statement", "published", "measure", "reproduced", "shown", "needs", "differs"}
    if unknown := set(item) - known:
        raise AnalysisError(f"{source}: found the keys {sorted(unknown)}; allowed: {', '.join(sorted(known))}")
    identity = f.text("id")
    if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", identity):
        raise AnalysisError(f"{source}: key 'id': found '{identity}'; allowed: small letters, digits and hyphens")
    published = Published.read(f.part("published"))
    try:
        measure = MeasureCall.parse(item["measure"], book.measures, book.quantities)
    except (ValueError, KeyError, AttributeError) as error:
        raise AnalysisError(f"{source}: key 'measure': {error}") from error
    needs = f.part("needs") if "needs" in item else Fields(source, {})
    return Claim(
        id=identity,
        section=f.text("section"),
        statement=f.text("statement"),
        published=published,
        measure=measure,
        criterion=_criterion(f.part("reproduced"), published, source),
        shown=f.texts("shown"),
        sweeps=needs.texts("sweeps"),
        window_seconds=needs.maybe_number("window_seconds"),
        **{key: tuple(needs.part(key).values.items()) for key in ("settings", "config") if key in needs.values},
        differs=f.text("differs", ""),
    )


def _criterion(f: Fields, published: Published, source: str) -> Criterion:
    direction = f.text("direction")
    if direction not in DIRECTIONS:
        allowed = ", ".join(DIRECTIONS)
        raise AnalysisError(f"{source}: key 'reproduced.direction': found '{direction}'; allowed: {allowed}")
    if direction == "between":
        low, high = f.number("low"), f.number("high")
        region, words = Region(low, high), f"between {_plain(low)} and {_plain(high)}"
    else:
        than = f.number("than")
        region = Region(than, math.inf) if direction == "above" else Region(-math.inf, than)
        words = f"{direction} {_plain(than)}"
    factor = f.maybe_number("factor")
    if factor is None:
        return Criterion(region, None, words)
    if published.value is None or published.value <= 0 or factor <= 1:
        raise AnalysisError(f"{source}: key 'reproduced.factor': needs a factor above 1 and a published value")
    around = f"within a factor of {_plain(factor)} of {_plain(published.value)}"
    words = around if region.low == 0 else f"{words} and {around}"
    return Criterion(region, Region(published.value / factor, published.value * factor), words)


def _plain(value: float) -> str:
    return f"{value:,g}" if value < 1e6 else f"{value:,.0f}"
