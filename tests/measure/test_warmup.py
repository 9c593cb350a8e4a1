"""Detection of a warm server: it gets no faster. A table that gets slower as it grows is not considered."""

from __future__ import annotations

import numpy as np
import pytest

from tidemark.measure.warmup import STRETCHES, is_steady, medians_ms


@pytest.mark.parametrize(
    ("medians", "steady"),
    [
        ([], False),
        ([5.0, 5.0], False),
        ([5.0, 5.1, 5.0], True),
        ([9.0, 5.1, 5.0, 5.05], True),
        ([5.6, 5.1, 5.0], False),
        ([5.0, 5.6, 5.0], False),
        ([5.0, 5.5, 6.0], True),
    ],
    ids=["nothing", "too few", "steady", "warmed up before", "still warming", "an outlier", "a table that grows"],
)
def test_steady_is_not_getting_faster(medians: list[float], steady: bool) -> None:
    assert is_steady(medians) is steady


def test_window_is_divided_into_parts_of_equal_count() -> None:
    writes = np.repeat(np.array([5, 4, 3, 2, 1], np.int64), 20) * 1_000_000
    assert medians_ms(writes) == [5.0, 4.0, 3.0, 2.0, 1.0] and len(medians_ms(writes)) == STRETCHES
    assert medians_ms(writes[:2]) == [5.0, 5.0]
    assert medians_ms(writes[:0]) == []
