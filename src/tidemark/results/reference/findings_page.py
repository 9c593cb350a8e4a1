"""FINDINGS.md: a paragraph per finding, then findings that are not claimed, and those published before by others."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from tidemark.results.reference.findings import FOLDER, LEAST, OF_SCRIPT, OF_TEN, Finding, Known, Shown

MOST = 400  # characters shown of a value in the raw evidence


def page(found: Sequence[Shown]) -> str:
    """Return the text."""
    own = _worst_first([each for each in found if each.finding.published is None])
    claimed = [each for each in own if not each.why_not]
    lines = [
        "# Findings",
        "",
        "What was found while this was built, of which no earlier publication is known to us. This page is made by "
        f"`./tidemark artifact` from `reference/`; nothing is claimed that fewer than {OF_TEN} of 10 of the runs and "
        f"cells shipped there show, or that was looked at fewer than {LEAST} times. `./tidemark finding NAME` repeats "
        "one: it makes the environment of the locks and runs a script of `findings/`, which needs nothing of Tidemark.",
        "",
    ]
    for each in claimed:
        lines += _claimed(each)
    if not claimed:
        lines += ["None yet: the reference results show none of those that are declared.", ""]
    lines += _listed("Not claimed", [f"`{each.finding.id}`: {each.why_not}." for each in own if each.why_not])
    before = _worst_first([each for each in found if each.finding.published is not None])
    if before:
        lines += ["## Seen here, published by others before", ""]
    for each in before:
        lines += _before(each)
    return "\n".join(lines)


def _worst_first(found: Sequence[Shown]) -> list[Shown]:
    """Sort findings of wrong rows first, otherwise in the order of declaration."""
    return sorted(found, key=lambda each: not each.finding.wrong_rows)


def _claimed(each: Shown) -> Iterator[str]:
    finding = each.finding
    yield f"## {finding.title}\n"
    yield from _seen(finding)
    yield f"- Seen {'by arithmetic' if finding.arithmetic else f'in {" and in ".join(_counts(each))}'}."
    yield from _about(finding)
    yield from (f"- Near to it: {_known(known)}." for known in finding.related)
    yield ""
    if each.evidence is not None:
        yield from _case(each)


def _counts(each: Shown) -> Iterator[str]:
    for count in each.counts:
        if each.evidence is not None and count.words == OF_SCRIPT:
            versions = ", ".join(f"{name} {version}" for name, version in each.evidence.versions)
            yield f"{count} ({versions}; {each.evidence.machine})"
        else:
            yield str(count)


def _case(each: Shown) -> Iterator[str]:
    evidence = each.evidence
    assert evidence is not None
    yield f"One case (all of it in `reference/{FOLDER}/{each.finding.id}.json`):\n"
    yield "```"
    yield next(attempt.said for attempt in evidence.attempts if attempt.seen)
    for name, value in (evidence.case or {}).items():
        text = json.dumps(value)
        yield f"{name}: {text if len(text) <= MOST else f'{text[:MOST]} ...'}"
    yield "```\n"


def _before(each: Shown) -> Iterator[str]:
    finding = each.finding
    assert finding.published is not None
    yield f"### {finding.title}\n"
    yield from _seen(finding)
    if each.counts:
        yield f"- Seen here in {' and in '.join(_counts(each))}."
    yield f"- Published: {_known(finding.published)}."
    yield from _about(finding)
    yield ""
    if each.evidence is not None and each.evidence.case is not None:
        yield from _case(each)


def _seen(finding: Finding) -> Iterator[str]:
    yield finding.seen.strip().replace("\n", "\n\n") + "\n"
    if finding.meanwhile:
        yield f"**Meanwhile:** {finding.meanwhile.strip()}\n"


def _about(finding: Finding) -> Iterator[str]:
    alone = f", or, alone, `{finding.path.parent.name}/{finding.path.name}`" if finding.script else ""
    yield f"- Repeat it: `{finding.command}`{alone}."
    yield f"- It does not show {finding.not_shown.strip()}"


def _known(known: Known) -> str:
    return f"{known.place} ({known.words})"


def _listed(title: str, items: Sequence[str]) -> Iterator[str]:
    if items:
        yield f"## {title}\n"
        yield from (f"- {item}" for item in items)
        yield ""
