"""Heat map of counts as a share of their maximum, annotated with the counts."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
import seaborn as sns

from tidemark.results.figures import style
from tidemark.results.figures.studio import Drawn, Studio
from tidemark.runs.run import Run


def heat(
    studio: Studio, title: str, counts: pd.DataFrame, most: Sequence[int], notes: Sequence[str], runs: Sequence[Run]
) -> Drawn:
    """Draw a heat map of `counts`, int64[rows, columns] with labels; `most` is the largest possible count per row."""
    made = style.frame(style.PAGE, 0.9 + 0.28 * len(counts))
    axes = made.axes(1.75, 0.1)
    sns.heatmap(
        counts.div(most, axis=0), annot=counts, fmt=",d", cmap="Blues", vmin=0, vmax=1.4, cbar=False, linewidths=0.5,
        annot_kws={"fontsize": style.SMALL, "color": style.INK}, ax=axes,
    )  # fmt: skip
    axes.tick_params(length=0, labelsize=style.SMALL)
    axes.tick_params(axis="x", rotation=20)
    return studio.finish(made, title, [*notes, studio.run_set.coverage], runs)
