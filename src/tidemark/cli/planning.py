"""`tidemark advise`: prediction of the systems that can sustain a load that was not measured."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tidemark.errors import AnalysisError, ConfigError

if TYPE_CHECKING:
    from rich.table import Table

    from tidemark.planner.frontier import PolicyCost
    from tidemark.planner.prediction import Answer, Load

SECONDS = {"ms": 0.001, "s": 1.0, "min": 60.0, "h": 3600.0}
WIDTH = 110  # of a table that no terminal shows
PRESET = "advise"  # measures all settings that a prediction needs
UPKEEP_PRESET = "upkeep"  # measures policies of upkeep
NUMBER = r"\d+(?:\.\d+)?"


def seconds(option: str, text: str) -> float:
    """Convert a time with its unit, such as 20ms, to seconds; raise ConfigError, naming the option, if invalid."""
    found = re.fullmatch(rf"({NUMBER})({'|'.join(SECONDS)})", text, re.ASCII)
    if found is None:
        units = ", ".join(SECONDS)
        raise ConfigError(f"{option}: found '{text}'; allowed: a number and its unit ({units}), such as 20ms or 10s")
    return float(found[1]) * SECONDS[found[2]]


def share(option: str, text: str) -> float:
    """Convert a percentage such as 30% to a fraction; raise ConfigError, naming the option, if invalid."""
    found = re.fullmatch(rf"({NUMBER})%", text, re.ASCII)
    if found is None:
        raise ConfigError(f"{option}: found '{text}'; allowed: a number and %, such as 30%")
    return float(found[1]) / 100


def advise(
    rate: Annotated[int, typer.Option(min=1, help="Events a second that are to be written.")],
    fresh: Annotated[
        str, typer.Option(metavar="TIME", help="How old an event may be at its commit: 500ms, 10s, 1min.")
    ],
    store_latency: Annotated[
        str | None, typer.Option(metavar="TIME", help="Round trip to the object store, 20ms; without it: local files.")
    ] = None,
    writers: Annotated[int, typer.Option(min=1, help="Writers of the one table.")] = 1,
    batch: Annotated[int | None, typer.Option(min=1, help="Events of a commit; without it: any that would do.")] = None,
    commits: Annotated[int, typer.Option(min=0, help="Commits that the table has had since its maintenance.")] = 100,
    error: Annotated[
        str, typer.Option(metavar="PERCENT", help="The worst error on held-out cells that a prediction is made with.")
    ] = "30%",
    results: Annotated[
        Path | None,
        typer.Option(
            help="A results folder, an archive, or 'reference'; by default 'results', or 'reference' if nothing was "
            "measured here.",
            show_default=False,
        ),
    ] = None,
    upkeep: Annotated[
        bool,
        typer.Option(
            "--upkeep",
            help="Say instead which policies, of commits and of the upkeep between them, no other one beats in "
            "freshness, processor time and longest stall at once.",
        ),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="All of it as JSON.")] = False,
) -> None:
    """Predict which systems can carry a load that was not measured, and with which batch size.

    A cost model of commits is fitted to your runs, or to those that are shipped if you have none; its error on held-out
    cells is shown next to each prediction. Where it errs by more than --error, or too few cells were measured, the
    reason is shown instead.

    Three questions: '--rate 50000 --fresh 10s'; '--rate 2000 --fresh 10s --store-latency 20ms', with files in S3;
    '--rate 2000 --fresh 10s --writers 4'. '--rate 1000 --fresh 2s --upkeep' asks for a policy of upkeep.
    """
    fresh_s = seconds("--fresh", fresh)
    rtt_ms = None if store_latency is None else seconds("--store-latency", store_latency) * 1000
    bound = share("--error", error)
    if fresh_s <= 0:
        raise ConfigError(f"--fresh: found '{fresh}'; allowed: more than 0")
    if upkeep:
        _print_policies(rate, fresh_s, results, as_json)
        return
    from tidemark.pipeline.commit_costs import FILE, read_costs
    from tidemark.planner.prediction import Load, answers

    load = Load(rate, fresh_s, writers, rtt_ms, batch, commits)
    measured, place = read_costs(results)
    found = answers(load, (*measured.costs, *measured.ages), bound)
    if as_json:
        _print_json(load, bound, found, f"{place}: {measured.origin}", measured.marks)
        return
    print(f"Measured: {measured.origin} ({place})")
    for sentence in measured.marks:
        print(f"{sentence}.")
    if place.name == FILE:
        print(f"Your machine differs. For an answer from it: {_to_measure(PRESET)}")
    elif kinds := dict.fromkeys(each.lacks for each in found if each.lacks):
        print(f"To measure more {' and '.join(kinds)}: {_to_measure(PRESET)}; what is shipped: --results reference")
    _print_table(load, found)


def _print_json(load: Load, bound: float, found: list[Answer], origin: str, marks: list[str]) -> None:
    from tidemark.planner.prediction import REACH, ROOM

    rules = {"most_utilisation": ROOM, "most_error": bound, "reach": REACH}
    systems = [asdict(each) for each in found]
    whole = {"measured": origin, "marked": marks, "load": asdict(load), "rules": rules, "systems": systems}
    print(json.dumps(whole, indent=1))


def example(kept: Path) -> Iterator[str]:
    """Yield the lines of the first page: a question, and the table of its answer from the costs in `kept`."""
    from io import StringIO

    from rich.console import Console

    from tidemark.pipeline.commit_costs import read_costs
    from tidemark.planner.prediction import Load, answers

    load = Load(rate=50_000, fresh_s=10)
    measured, _ = read_costs(kept)
    console = Console(width=WIDTH, file=StringIO())
    console.print(_table(load, answers(load, (*measured.costs, *measured.ages), 0.3)))
    yield f"```text\n$ ./tidemark advise --rate {load.rate} --fresh {load.fresh_s}s"
    assert isinstance(console.file, StringIO)
    yield from (line.rstrip() for line in console.file.getvalue().splitlines() if line.strip())
    yield f"```\n\n*Measured: {measured.origin}.*"


def _table(load: Load, found: list[Answer]) -> Table:
    """Return the table of the systems with a prediction."""
    from rich import box
    from rich.table import Table

    from tidemark.planner.prediction import NOT_PREDICTED

    several = len({each.stack for each in found}) > 1
    table = Table(title=_title(load), box=box.SIMPLE, padding=(0, 1, 0, 0))
    table.add_column("System", min_width=14)
    headings = ["Batches", "Commit", "Busy", "Age", "Events/s", "Files", "Error"]
    headings += ["Ages"] if any(each.errors and each.errors.ages for each in found) else []
    for heading in headings:
        table.add_column(heading, justify="right", no_wrap=True)
    for each in found:
        if each.verdict != NOT_PREDICTED:
            table.add_row(_name(each, several), *_cells(each)[: len(headings)])
    return table


def _print_table(load: Load, found: list[Answer]) -> None:
    from rich.console import Console

    from tidemark.planner.prediction import NOT_PREDICTED, REACH, ROOM

    console = Console(width=None if sys.stdout.isatty() else WIDTH)
    several = len({each.stack for each in found}) > 1
    predicted = [each for each in found if each.verdict != NOT_PREDICTED]
    lines = [f"{_name(each, several)}: {each.verdict}: {each.reason}" for each in found if each.reason]
    if not predicted:
        print("\n".join(lines))
        raise AnalysisError(f"no system is predicted at {load.rate:,} events/s: the reasons are above")
    lines += [
        "",
        f"Batches: those that would do: the age is at most {load.fresh_s:g} s and writers are busy for at most "
        f"{100 * ROOM:.0f} %, both with a commit that takes longer by the worst error. The rest of a row is of the "
        "largest of them, which leaves the fewest files; where none would do, of the one that comes nearest.",
        "Age: of the oldest event at its commit, when that is a typical one: single ones take longer. Events/s: the "
        "most that could be written. Files: data and metadata, of a million events.",
        "Error: of the time of commits in cells held out from the fit: median/worst (cells); the worst also of what "
        "the fit leaves at the ends of what was measured, which are held out for batches beyond them. Ages: the median "
        f"error of ages that were in no fit. Nothing is predicted beyond {REACH:g} times what was measured.",
    ]
    lines += [f"{_name(each, several)}: {'; '.join(each.remarks)}." for each in predicted]
    lines += ["", "What an acknowledgement promises is not the same:"]
    lines += [f"{_name(each, several)}: {each.promise.removesuffix('.')}." for each in predicted]
    console.print(_table(load, found))
    for line in lines:
        console.print(line, markup=False, highlight=False, soft_wrap=True)


def _print_policies(rate: int, fresh_s: float, results: Path | None, as_json: bool) -> None:
    """Print the unbeaten policies of upkeep at the measured rate that is nearest to `rate`.

    Raises AnalysisError, with the command that tells, if none was measured near it.
    """
    from tidemark.pipeline.commit_costs import POLICIES, read_costs
    from tidemark.planner.frontier import cheapest_of_others, near, unbeaten

    measured, place = read_costs(results, upkeep=True)
    nearby = near(rate, measured.policies)
    best = unbeaten(nearby)
    sizes = "freshness.protocols.quick"
    own = _to_measure(UPKEEP_PRESET, f" --config {sizes}.rate={rate} '{sizes}.upkeep.rates=[{rate}]'")
    if not best:
        raise AnalysisError(f"{place}: no policy of upkeep was measured near {rate:,} events/s; what would tell: {own}")
    enough = [each for each in best if each.fresh_s <= fresh_s]
    if as_json:
        found = {"measured": f"{place}: {measured.origin}", "policies": [asdict(each) for each in enough]}
        print(json.dumps(found, indent=1))
        return
    print(f"Measured: {measured.origin} ({place}), at {best[0].rate:,} events/s")
    for sentence in measured.marks:
        print(f"{sentence}.")
    if place.name == POLICIES:
        print(f"Your machine differs. For an answer from it: {own}")
    print("Not beaten by another policy in p99 freshness, processor time and longest stall of the writer at once:")
    several = len({each.stack for each in best}) > 1
    for each in enough:
        print(f"{f'{each.stack}: ' if several else ''}{each.sentence}")
    if not enough:
        print(f"none within {fresh_s:g} s; the freshest: {best[0].sentence}")
    cheapest = cheapest_of_others(nearby, best, fresh_s)
    if cheapest:
        print("Of each other system, the one with the least processor time:")
        for each in cheapest:
            print(f"{f'{each.stack}: ' if several else ''}{each.sentence}")
    for line in _caveats([*enough, *cheapest]):
        print(line)


def _caveats(policies: Sequence[PolicyCost]) -> Iterator[str]:
    """Yield how the look at a table differs from a reader's, for those of `policies` where it does."""
    from tidemark.systems.registry import of_kind
    from tidemark.systems.tables import TableSystem

    systems = of_kind(TableSystem)
    for name, title in dict.fromkeys((each.system, each.title) for each in policies):
        if name in systems and systems[name].look_differs:
            yield f"{title}: {systems[name].look_differs}."


def _to_measure(preset: str, values: str = "") -> str:
    """Return the command that measures what a preset asks for, with other `values`, and its time."""
    from tidemark.config import about_preset

    minutes = about_preset(preset).rpartition("Time: ")[2].removesuffix(".")
    return f"./tidemark all --preset {preset}{values} ({minutes})"


def _title(load: Load) -> str:
    where = "files on the local disk" if load.rtt_ms is None else f"a store {load.rtt_ms:g} ms away"
    who = "one writer" if load.writers == 1 else f"{load.writers} writers"
    return f"{load.rate:,} events/s, {who}, {where}, a table of {load.commits:,} commits"


def _name(answer: Answer, several: bool) -> str:
    return f"{answer.title} ({answer.stack})" if several else answer.title


def _cells(answer: Answer) -> list[str]:
    from tidemark.analysis.formatting import number

    one, errors = answer.prediction, answer.errors
    assert one is not None and errors is not None
    span = f"none ({one.batch:,})"
    if answer.batches is not None:
        span = "-".join(f"{size:,}" for size in dict.fromkeys(answer.batches))
    return [
        span,
        f"{number(one.commit_ms, 3)} ms",
        f"{number(100 * one.utilisation, 2)} %",
        f"{number(one.age_s, 2)} s",
        number(one.rows_per_s, 2),
        "" if one.files is None else number(one.files, 2),
        f"{100 * errors.median:.0f}/{100 * errors.worst:.0f} % ({errors.cells})",
        "" if errors.age_median is None else f"{100 * errors.age_median:.0f} % ({errors.ages})",
    ]
