"""Counts as shades of what they could be at most, with the counts in words."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from tidemark.results.figures import style
from tidemark.results.figures.studio import Drawn, Studio
from tidemark.runs.run import Run


def heat(
    studio: Studio, title: str, rows: Sequence[str], columns: Sequence[str], counts: npt.NDArray[np.int64],
    most: Sequence[int], notes: Sequence[str], runs: Sequence[Run],
) -> Drawn:  # fmt: skip
    """`counts`: int64[rows, columns]; `most` is what a count of each row can be at most."""
    made = style.frame(style.PAGE, 0.9 + 0.28 * len(rows))
    axes = made.axes(1.75, 0.1)
    axes.imshow(counts / np.array(most)[:, None], cmap="Blues", vmin=0, vmax=1.4, aspect="auto")
    for row, column in np.ndindex(counts.shape):
        axes.text(column, row, f"{counts[row, column]:,}", ha="center", va="center", fontsize=style.SMALL)
    axes.set_xticks(range(len(columns)), list(columns), fontsize=style.SMALL, rotation=20)
    axes.set_yticks(range(len(rows)), list(rows))
    axes.tick_params(length=0, labelsize=style.SMALL)
    return studio.finish(made, title, [*notes, studio.run_set.coverage], runs)
