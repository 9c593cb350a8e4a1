"""Random integer draws that depend only on a seed and a position, so that they are the same on every machine.

A sequential generator would make a row depend on the rows drawn before it. Here the draw of a row is a hash of
its position: any row can be drawn independently, in chunks of any size and in any order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate

import numpy as np
import numpy.typing as npt

Integers = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]

LEVELS = 1 << 16  # a draw takes 16 bits: four draws per word
_GOLDEN = 0x9E3779B97F4A7C15
_MASK = (1 << 64) - 1


def mix(words: Words) -> Words:
    """Apply the finaliser of SplitMix64 (Steele, Lea, Flood 2014): a bijection of 64-bit words, shape kept."""
    words = words ^ (words >> np.uint64(30))
    words = words * np.uint64(0xBF58476D1CE4E5B9)
    words = words ^ (words >> np.uint64(27))
    words = words * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))


def key(seed: int, stream: int) -> np.uint64:
    """Return the start of a seed's numbered stream."""
    start = np.array([(seed * 0xD1342543DE82EF95 + (stream + 1) * _GOLDEN) & _MASK], dtype=np.uint64)
    return np.uint64(mix(start)[0])


def words(seed: int, stream: int, positions: Words) -> Words:
    """Return one 64-bit word for each position (uint64, any shape)."""
    return mix(positions * np.uint64(_GOLDEN) + key(seed, stream))


def quarters(seed: int, stream: int, positions: Words) -> tuple[Integers, Integers, Integers, Integers]:
    """Return four independent draws from 0..65,535 for each position."""
    word = words(seed, stream, positions)
    parts = [((word >> np.uint64(shift)) & np.uint64(LEVELS - 1)).astype(np.int64) for shift in (0, 16, 32, 48)]
    return parts[0], parts[1], parts[2], parts[3]


def chance(share: int) -> int:
    """Return the bound below which draws make up `share` parts of 10,000."""
    return share * LEVELS // 10_000


def category_table(weights: Mapping[int, int]) -> Integers:
    """Return the category of each of the 65,536 draws; each category gets its share of them, rounded."""
    bounds = proportional(list(weights.values()), LEVELS)
    return np.repeat(np.array(list(weights), dtype=np.int64), np.diff(bounds, prepend=0))


def quantile_table(knots: Sequence[tuple[int, int]]) -> Integers:
    """Return the value of each of the 65,536 draws: `knots` are (parts of 10,000, value), linear between them."""
    at = np.arange(LEVELS, dtype=np.int64) * 10_000
    parts = np.array([part for part, _ in knots], dtype=np.int64) * LEVELS
    values = np.array([value for _, value in knots], dtype=np.int64)
    left = np.searchsorted(parts, at, side="right") - 1
    rise = values[left + 1] - values[left]
    table: Integers = values[left] + (at - parts[left]) * rise // (parts[left + 1] - parts[left])
    return table


def proportional(weights: Sequence[int], total: int) -> Integers:
    """Return ascending ends that cut `total` items into parts proportional to `weights`; the last is `total`."""
    whole = sum(weights)
    return np.array([reached * total // whole for reached in accumulate(weights)], dtype=np.int64)


def shuffled(positions: Words, count: int, seed: int, stream: int) -> Words:
    """Return the place of each position in a pseudo-random order of 0..count-1 (a bijection).

    Uses a Feistel network over the next power of two; places outside `count` are mapped again until they are
    inside (cycle walking, Black and Rogaway 2002).
    """
    bits = max(2, (count - 1).bit_length())
    places = _feistel(positions, bits, seed, stream)
    outside = np.flatnonzero(places >= count)
    while outside.size:
        places[outside] = _feistel(places[outside], bits, seed, stream)
        outside = outside[places[outside] >= count]
    return places


def _feistel(positions: Words, bits: int, seed: int, stream: int) -> Words:
    low_bits, high_bits = bits // 2, bits - bits // 2
    high, low = positions >> np.uint64(low_bits), positions & np.uint64((1 << low_bits) - 1)
    for turn in range(4):
        high = high ^ (words(seed, stream + turn, low) >> np.uint64(64 - high_bits))
        low = low ^ (words(seed, stream + 4 + turn, high) >> np.uint64(64 - low_bits))
    return (high << np.uint64(low_bits)) | low
