"""`tidemark advise`: prediction of the systems that can sustain a load that was not measured."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tidemark.errors import AnalysisError, ConfigError

if TYPE_CHECKING:
    from tidemark.planner.prediction import Answer, Load

SECONDS = {"ms": 0.001, "s": 1.0, "min": 60.0, "h": 3600.0}
# The preset that measures more of a setting of the planner.
MEASURED_BY = {"batch sizes": "advise", "distances of a store": "object-storage", "numbers of writers": "many-writers"}
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
    commits: Annotated[int, typer.Option(min=0, help="Commits that the table has had since its maintenance.")] = 1_000,
    error: Annotated[
        str, typer.Option(metavar="PERCENT", help="The worst error on held-out cells that a prediction is made with.")
    ] = "30%",
    results: Annotated[Path, typer.Option(help="A results folder or an archive.")] = Path("results"),
    as_json: Annotated[bool, typer.Option("--json", help="All of it as JSON.")] = False,
) -> None:
    """Predict which systems can carry a load that was not measured, and with which batch size.

    A cost model of commits is fitted to the runs of a result set; its error on held-out cells is shown next to each
    prediction. Where it errs by more than --error, or too few cells were measured, the reason is shown instead.
    """
    fresh_s = seconds("--fresh", fresh)
    rtt_ms = None if store_latency is None else seconds("--store-latency", store_latency) * 1000
    bound = share("--error", error)
    if fresh_s <= 0:
        raise ConfigError(f"--fresh: found '{fresh}'; allowed: more than 0")
    from tidemark.pipeline.build import plan_for
    from tidemark.planner.prediction import Load

    load = Load(rate, fresh_s, writers, rtt_ms, batch, commits)
    found = plan_for(results, load, bound)
    if as_json:
        _print_json(load, bound, found)
    else:
        _print_table(load, found)


def _print_json(load: Load, bound: float, found: list[Answer]) -> None:
    import json
    from dataclasses import asdict

    from tidemark.planner.prediction import REACH, ROOM

    rules = {"most_utilisation": ROOM, "most_error": bound, "reach": REACH}
    print(json.dumps({"load": asdict(load), "rules": rules, "systems": [asdict(each) for each in found]}, indent=1))


def _print_table(load: Load, found: list[Answer]) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table

    from tidemark.planner.prediction import NOT_PREDICTED, REACH, ROOM

    console = Console()
    several = len({each.stack for each in found}) > 1
    predicted = [each for each in found if each.verdict != NOT_PREDICTED]
    table = Table(title=_title(load), box=box.SIMPLE, padding=(0, 1, 0, 0))
    table.add_column("System", min_width=14)
    for heading in ("Batches", "Commit", "Busy", "Age", "Events/s", "Files", "Error", "Ages"):
        table.add_column(heading, justify="right", no_wrap=True)
    for each in predicted:
        table.add_row(_name(each, several), *_cells(each))
    lines = [f"{_name(each, several)}: {each.verdict}: {each.reason}" for each in found if each.reason]
    lines += _to_measure(found)
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
    lines += [f"{_name(each, several)}: {each.promise}." for each in predicted]
    console.print(table)
    for line in lines:
        console.print(line, markup=False, highlight=False, soft_wrap=True)


def _to_measure(found: Sequence[Answer]) -> Iterator[str]:
    """Yield the command that measures each setting that was measured too few times, with its time."""
    from tidemark.config import about_preset

    for kind in dict.fromkeys(each.lacks for each in found if each.lacks):
        minutes = about_preset(MEASURED_BY[kind]).rpartition("Time: ")[2].removesuffix(".")
        yield f"To measure more {kind}: ./tidemark all --preset {MEASURED_BY[kind]} ({minutes})"


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
