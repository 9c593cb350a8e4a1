"""Figure ingest-group: the effect of gathering requests, with the values printed on kyma's page as ticks."""

from __future__ import annotations

from collections.abc import Iterator

import seaborn as sns

from tidemark.analysis.measures import NotAvailable
from tidemark.analysis.statistics import Estimate
from tidemark.results.figures import plots, style
from tidemark.results.figures.context import DrawnFigure, FigureContext, FigureSpec
from tidemark.runs.run import Run
from tidemark.studies.ingest import published
from tidemark.studies.ingest.gateway.policies import BUNDLED, STAGED
from tidemark.studies.ingest.group_commit.results import gains, shape

TITLE = "Gathered requests over one commit a request"
ROW, LEFT, GAP = 0.26, 1.55, 0.25  # inches
APART = 0.17  # distance from a row's middle to a policy's line, in rows


def figure_specs() -> Iterator[FigureSpec]:
    yield FigureSpec("ingest-group", TITLE, group)


def group(context: FigureContext) -> DrawnFigure:
    """Draw rows per second (left) and p99 (right) of staged (filled) and bundled (hollow) requests over direct ones."""
    found: dict[tuple[str, int, int], dict[str, tuple[Estimate, Estimate | None]]] = {}
    runs: list[Run] = []
    for policy in (STAGED, BUNDLED):
        for series, rate, tail in gains(context.measures, policy):
            key = (series.title, *shape(series))
            found.setdefault(key, {})[policy] = (rate, tail)
            runs += list(series.hot_runs)
    if not found:
        raise NotAvailable("no requests were gathered and committed one by one as well")
    made = style.frame(style.PAGE, ROW * len(found) + 0.1)
    wide = (style.PAGE - LEFT - GAP - 0.15) / 2
    panels = (made.axes(LEFT, GAP + wide + 0.15), made.axes(LEFT + wide + GAP, 0.15))
    for place, (axes, what) in enumerate(zip(panels, ("rows a second, over direct", "p99, over direct"), strict=True)):
        points: dict[str, list[dict[str, object]]] = {STAGED: [], BUNDLED: []}
        for row, (key, policies) in enumerate(found.items()):
            for policy, both in policies.items():
                y, estimate = row + (APART if policy == BUNDLED else -APART), both[place]
                if estimate is not None:
                    points[policy] += plots.rows_of(estimate, system=key[0], row=y)
                printed = _printed(policy, *key[1:])[place]
                sns.scatterplot(
                    x=printed, y=[y] * len(printed), marker="|", s=40, linewidth=1.1, color=style.INK, ax=axes
                )
        for policy, rows in points.items():
            if rows:
                plots.lines(
                    axes, rows, "value", "row", context.look, orient="y", joined=False, hollow=policy == BUNDLED
                )
        axes.axvline(1, color=style.INK, linewidth=0.7, linestyle=(0, (3, 2)))
        plots.titles(axes, [f"{title}, {rows:,} x {clients}" for title, rows, clients in found])
        plots.log_axis(axes)
        axes.set_xlabel(f"{what}, log scale")
    panels[1].set_yticklabels([])
    notes = [
        "Hot runs; rows a request x clients. Filled: staged, hollow: bundled; lines: 95 % intervals; upright ticks: "
        "what kyma's page prints for its store. Left, more is better; right, less.",
        context.run_set.coverage,
    ]
    short = [f"{key[0]}, {key[1]:,} x {key[2]} ({policy})" for key, each in found.items() for policy in each
             if each[policy][1] is None]  # fmt: skip
    notes += [f"Too few requests for a p99: {', '.join(short)}."] if short else []
    return context.finish(made, TITLE, notes, runs)


def _printed(policy: str, rows: int, clients: int) -> tuple[list[float], list[float]]:
    """Return kyma's rates and p99 over those of its direct requests, from each table of its page that has both."""
    cells = [each for each in published.cells() if (each.rows, each.workers) == (rows, clients)]
    direct = {each.table: each for each in cells if each.policy == published.DIRECT}
    mine = [each for each in cells if each.policy == policy and each.table in direct]
    rates = [each.rows_per_s / direct[each.table].rows_per_s for each in mine]
    pairs = [(each.p99_ms, direct[each.table].p99_ms) for each in mine]
    return rates, [own / other for own, other in pairs if own and other]
