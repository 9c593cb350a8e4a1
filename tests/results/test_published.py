"""Tests of claims' published values and quotations, checked against the typed numbers and the publications.

The publications belong to others and are not in the repository. To have each quotation looked up, set
TIDEMARK_TEST_SEEDS to a folder with their texts, one text file per study.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
import yaml
from tests.results.typed import typed_value

from tidemark.analysis.metrics import Metric
from tidemark.errors import AnalysisError
from tidemark.pipeline.build import books
from tidemark.results.claims.claims import NOT_TESTABLE, QUOTATION, UNTESTED, Claim, ClaimSet, Published, load_claims
from tidemark.results.reference.content import folders, read_references
from tidemark.runs.serde import Fields
from tidemark.studies.catalogs import published as catalogs
from tidemark.studies.deltars import published as deltars
from tidemark.studies.lhbench import published as lhbench

REFERENCE = Path(__file__).parents[2] / "reference"
BOOKS = {book.study: book for book in books()}
# Number of claims per study whose value the typed numbers give. A smaller number would mean that less is checked.
TYPED = {"streams": 38, "deltars": 30, "catalogs": 53, "ingest": 26, "lhbench": 27}
SEEDS = "TIDEMARK_TEST_SEEDS"
# A phrase that identifies each publication's text in the folder, whatever its file name.
TITLES = {
    "streams": "Evaluating Data Stream Write Performance in Lakehouse Systems",
    "deltars": "Reducing read and write latency using Rust in an offline feature store",
    "lhbench": "Analyzing and Comparing Lakehouse Storage Systems",
    "ingest": "kyma_ingest_core::StagingBuffer",
    "catalogs": "The implementation with the new persistence layer and MongoDB",
}
OF_PICTURES = {"Rows Updated"}  # printed in a figure, which the text lacks
WORDS = {"zero": 0, "one": 1, "an": 1, "four": 4, "ten": 10}


def written(book: ClaimSet) -> dict[str, dict[str, Any]]:
    """Return the claims of a file by id, with their numbers as they are spelt there."""
    return {item["id"]: item for item in yaml.load(book.path.read_text(), yaml.BaseLoader)}


def rounds_to(number: float, spelt: str) -> bool:
    """Return True if `number`, rounded to the decimals of `spelt`, equals `spelt`."""
    decimals = len(spelt.partition(".")[2])
    return abs(number - float(spelt)) <= 0.5 * 10**-decimals + 1e-9


def wrong_values(book: ClaimSet) -> tuple[int, list[str]]:
    """Return how many values the typed numbers give, and a message for each value that differs from them."""
    spelt, checked, wrong = written(book), 0, []
    for claim in load_claims(book):
        made = typed_value(book.study, claim)
        if made is not None and claim.published.value is not None:
            checked += 1
            value = spelt[claim.id]["published"]["value"]
            wrong += [] if rounds_to(made, value) else [f"{claim.id}: {value}, typed numbers make {made:.5g}"]
    return checked, wrong


@pytest.mark.parametrize("study", TYPED)
def test_each_published_value_follows_from_the_typed_numbers(study: str) -> None:
    checked, wrong = wrong_values(BOOKS[study])
    assert not wrong and checked == TYPED[study]


@pytest.mark.parametrize(
    ("study", "claim", "value"),
    [
        ("streams", "write-single-pyiceberg-ducklake", "value: 35.01"),
        ("deltars", "deltars-upload-large", "value: 47.8"),
        ("deltars", "deltars-local-writes-always", "value: 1.10"),
        ("lhbench", "iceberg-mor-merge-then", "value: 0.32"),
        ("catalogs", "row-concurrent-new-view", "value: 626"),
        ("ingest", "group-50x32-tail", "value: 0.092"),
    ],
)
def test_a_wrong_value_is_found(study: str, claim: str, value: str, tmp_path: Path) -> None:
    before, after = BOOKS[study].path.read_text().split(f"- id: {claim}\n", 1)
    assert value in after
    planted = tmp_path / "claims.yaml"
    planted.write_text(f"{before}- id: {claim}\n" + after.replace(value, "value: 89.8", 1))
    _, wrong = wrong_values(replace(BOOKS[study], path=planted))
    assert [each.split(":")[0] for each in wrong] == [claim]


def numbers_in(text: str) -> list[float]:
    """Return the numbers of a text: digits, with and without the factor of their suffix, and a few number words."""
    found: list[float] = []
    for digits, suffix in re.findall(r"(\d[\d,]*(?:\.\d+)?)[ ]?(k|M|kB|GB)?(?![A-Za-z])", text):
        number = float(digits.replace(",", "").rstrip("."))
        found += [number, number * {"k": 1e3, "kB": 1e3, "GB": 1e3, "M": 1e6}.get(suffix, 1)]
    if dashed := re.search(r"(\d+)[–-](\d+)k", text):
        found += [1e3 * float(each) for each in dashed.groups()]
    found += [1e6 * float(each) for each in re.findall(r"(\d+)M", text)]
    found += [1e3 * float(each) for each in re.findall(r"(\d+) GBs", text)]
    return found + [WORDS[word] for word in re.findall(r"[a-z]+", text.lower().replace("-", " ")) if word in WORDS]


def follows(spelt: str, numbers: list[float]) -> bool:
    """Return True if a value is a number, a quotient (also in percent), or the factor of a percentage increase."""
    quotients = [a / b for a in numbers for b in numbers if b]
    made = [*numbers, *quotients, *(100 * each for each in quotients), *(1 + each / 100 for each in numbers)]
    made += [1e3 * each for each in numbers]  # 0.1 milliseconds are 100 µs
    return any(rounds_to(each, spelt.lstrip("-")) for each in made)


@pytest.mark.parametrize("study", BOOKS)
def test_each_number_follows_from_its_text_or_from_typed_numbers(study: str) -> None:
    spelt, wrong = written(BOOKS[study]), []
    for claim in load_claims(BOOKS[study]):
        given = spelt[claim.id]["published"]
        for key in ("value", "low", "high"):
            if key not in given or (key == "value" and typed_value(study, claim) is not None):
                continue
            if not follows(given[key], numbers_in(claim.published.text)):
                wrong.append(f"{claim.id}: {key} {given[key]} of {claim.published.text}")
    assert not wrong


@pytest.mark.parametrize("study", ["streams", "deltars", "lhbench"])
def test_quotient_of_two_compared_numbers_is_the_value(study: str) -> None:
    spelt = written(BOOKS[study])
    number = r"(\d[\d,]*(?:\.\d+)?)(?: ?([a-zA-Zµ]+))?"
    pair = re.compile(rf"{number} (?:against|of) {number}(?![.\d])")
    checked, wrong = 0, []
    for claim in load_claims(BOOKS[study]):
        found = pair.search(re.sub(r'"[^"]*"', "", claim.published.text))
        if found and "value" in spelt[claim.id]["published"]:
            first, unit, second, other = found.groups()
            quotient = float(first.replace(",", "")) / float(second.replace(",", ""))
            quotient *= 1e3 if (unit, other) == ("s", "ms") else 1.0
            checked += 1
            if not any(rounds_to(each, spelt[claim.id]["published"]["value"]) for each in (quotient, 100 * quotient)):
                wrong.append(f"{claim.id}: {claim.published.text}")
    assert checked and not wrong


def test_text_of_a_row_claim_repeats_the_typed_row() -> None:
    rows = [claim for claim in load_claims(BOOKS["catalogs"]) if claim.id.startswith("row-")]
    for claim in rows:
        given = dict(claim.measure.arguments)
        row = catalogs.row(given["mode"], given["case"], given["layer"], given["query"])
        times = f"mean {row.mean_ms:,g}, minimum {row.minimum_ms:,g}, median {row.median_ms:,g}, "
        times += f"maximum {row.maximum_ms:,g} ms; "
        told = f"{times if row.succeeded else ''}{row.succeeded:,} of {row.requests:,} succeeded"
        assert claim.published.text == told, claim.id


def test_cited_tables_and_figures_are_among_the_typed_ones() -> None:
    typed = {"deltars": {f"table {each.table}" for each in deltars.rows()}}
    typed["lhbench"] = {f"figure {each.figure}" for each in lhbench.numbers()}
    for study, places in typed.items():
        kind = next(iter(places)).split()[0]
        named = [each for claim in load_claims(BOOKS[study]) for each in claim.published.place.split(", ")]
        assert {each for each in named if each.startswith(kind)} <= places


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"text": "grows"}, "a quotation between quotation marks"),
        ({"text": '"grows'}, "quotation marks in pairs"),
        ({"value": 7.5, "low": 5, "text": ""}, "either a value, or a range"),
        ({"low": 10, "high": 5, "text": ""}, "a number below 'high'"),
        ({"value": 5, "words": "", "text": ""}, "no such key, but value, low, high, unit, text, place, source"),
        ({"value": 5, "text": "", "place": ""}, "such as 'section 5.1.1, table 5.1'"),
        ({"value": 5, "text": "", "place": "somewhere in 5.1"}, "such as 'section 5.1.1, table 5.1'"),
    ],
)
def test_malformed_published_value_is_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(AnalysisError, match=re.escape(message)):
        Published.read(Fields("claims.yaml", {"place": "table 5.1", **given}))


def test_a_claim_without_a_place_is_refused() -> None:
    with pytest.raises(AnalysisError, match="key 'place': found nothing"):
        Published.read(Fields("claims.yaml", {"value": 5, "text": ""}))


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ({"value": 7.4, "unit": "x", "text": "14.8 against 2"}, "7.4 ×"),
        ({"value": 1_000_000, "unit": "rows/s", "text": ""}, "1,000,000 rows/s"),
        ({"low": 5, "high": 10, "unit": "x", "text": '"5–10×"'}, "5 to 10 ×"),
        ({"low": 5_000_000, "unit": "rows/s", "text": '"5M+"'}, "at least 5,000,000 rows/s"),
        ({"high": 1, "unit": "ms", "text": '"lower than 1 millisecond"'}, "at most 1 ms"),
        ({"text": '"more or less constant"'}, '"more or less constant"'),
    ],
)
def test_values_ranges_bounds_and_quotations_are_shown_as_such(given: dict[str, Any], shown: str) -> None:
    assert Published.read(Fields("claims.yaml", {"place": "table 5.1", **given})).shown == shown


def plain(text: str) -> str:
    """Return a text without artefacts of typesetting and text extraction: markup, white space, kinds of quotes."""
    for old, new in (("$", ""), (r"\times", "×"), ("*", ""), ("’", "'"), ("–", "-"), ("[HopsFS](#)", "HopsFS")):
        text = text.replace(old, new)
    return re.sub(r"\s+", " ", re.sub(r"\s*×\s*", "×", text))


def sections(text: str) -> dict[str, str]:
    """Return a text by section number, without its table of contents; the abstract comes first."""
    found: dict[str, list[str]] = {}
    number = "abstract"
    for line in text.splitlines():
        heading = re.match(r"[#* ]*(?:Chapter )?(\d+(?:\.\d+)*)\.?(?: [A-Z]|$)", line)
        if "\t" in line and heading:
            continue
        number = heading[1] if heading else "abstract" if re.match("[#* ]*abstract", line, re.IGNORECASE) else number
        found.setdefault(number, []).append(line)
    return {number: plain("\n".join(lines)) for number, lines in found.items()}


@pytest.mark.parametrize("study", BOOKS)
def test_a_quantity_published_in_per_cent_is_measured_in_per_cent(study: str) -> None:
    called = [
        (claim.id, dict(claim.measure.arguments)["quantity"])
        for claim in load_claims(BOOKS[study])
        if claim.published.unit == "%" and claim.measure and claim.measure.name == "value"
    ]
    assert [name for name, quantity in called if not cast(Metric, quantity).shown_unit.startswith("%")] == []


@pytest.fixture(scope="module")
def texts() -> dict[str, str]:
    """Return the unmodified text of each publication in the folder, by study."""
    folder = os.environ.get(SEEDS)
    if not folder:
        pytest.skip(f"{SEEDS} names no folder with the texts of the publications, which are not kept here")
    found = [path.read_text() for path in sorted(Path(folder).glob("*.txt"))]
    return {study: next(text for text in found if title in text) for study, title in TITLES.items()}


@pytest.fixture(scope="module")
def seeds(texts: dict[str, str]) -> dict[str, str]:
    """Return the texts without artefacts of typesetting."""
    return {study: plain(text) for study, text in texts.items()}


def quoted(book: ClaimSet) -> Iterator[tuple[Claim, str, str]]:
    """Yield each quotation of a study's claims as (claim, study of the quoted publication, quotation).

    Quotations of other publications are left out: their texts are not in the folder.
    """
    for claim in load_claims(book):
        if claim.published.source:
            continue
        of = "streams" if claim.published.place.startswith("thesis") else book.study
        yield from ((claim, of, each) for each in QUOTATION.findall(claim.published.text) if each not in OF_PICTURES)


@pytest.mark.parametrize("study", TITLES)
def test_each_quotation_occurs_in_its_publication(study: str, seeds: dict[str, str]) -> None:
    found = list(quoted(BOOKS[study]))
    assert found
    assert [f"{claim.id}: {words}" for claim, of, words in found if plain(words) not in seeds[of]] == []


@pytest.mark.parametrize("study", ["streams", "deltars", "lhbench"])
def test_each_quotation_occurs_in_a_cited_section(study: str, texts: dict[str, str]) -> None:
    parts, wrong = sections(texts[study]), []
    for claim, of, words in quoted(BOOKS[study]):
        assert of == study
        named = [each.removeprefix("section ") for each in claim.published.place.split(", ")]
        within = [text for number, text in parts.items() if any(f"{number}.".startswith(f"{each}.") for each in named)]
        wrong += [] if any(plain(words) in text for text in within) else [f"{claim.id}: {words}"]
    assert not wrong


def test_each_quotation_in_contradiction_tables_occurs_in_its_publication(seeds: dict[str, str]) -> None:
    tables = {"catalogs": "catalog", "ingest": "ingest", "lhbench": "lhb"}
    for study, name in tables.items():
        written = json.loads((REFERENCE / study / "tables" / f"{name}-contradictions.json").read_text())
        found = [words for sentence, *_ in written["rows"] for words in QUOTATION.findall(sentence)]
        assert len(found) >= len(written["rows"])
        assert [each for each in found if each not in OF_PICTURES and plain(each) not in seeds[study]] == []


@pytest.mark.parametrize("folder", folders(REFERENCE), ids=lambda path: path.name)
def test_stored_claims_match_the_claims_file_and_its_criteria(folder: Path) -> None:
    (reference,) = read_references(folder)
    claims = {claim.id: claim for claim in load_claims(BOOKS[reference.about.study])}
    newer = set(claims) - {held.claim for held in reference.held}  # than these results: it says "no reference"
    assert {held.claim for held in reference.held} <= set(claims)
    assert not [each for each in newer if claims[each].needs_no_run]
    for held in reference.held:
        claim = claims[held.claim]
        assert (held.statement, held.published) == (claim.statement, claim.published.shown), held.claim
        absent = UNTESTED if claim.is_judged else NOT_TESTABLE
        verdict = absent if held.ours is None else claim.criterion.judge(held.ours)[0]
        assert held.verdict == verdict, held.claim
