"""Data set of the report: a binary tree of namespaces, with tables and views in its leaves.

Node i has the parent (i - 1) / 2; a namespace's path lists all names from the root. Names, properties and columns are
those of the report's benchmark. Only the root's name has a run's mark, so that several runs fit into one catalog.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

WIDTH = 2  # children of a namespace
TABLES = VIEWS = 2  # in each leaf
PROPERTIES = {f"InitialAttribute_{number}": str(number) for number in range(10)}
COLUMNS = tuple(f"column{number}" for number in range(1, 11))


@dataclass(frozen=True, slots=True)
class Tree:
    """Tree of `depth` levels, including the root."""

    depth: int
    mark: str  # of the run, part of the root's name

    @property
    def namespaces(self) -> int:
        """Number of namespaces, in closed form."""
        return int(WIDTH**self.depth - 1) // (WIDTH - 1)

    @property
    def leaves(self) -> int:
        return int(WIDTH ** (self.depth - 1))

    @property
    def tables(self) -> int:
        return self.leaves * TABLES

    @property
    def views(self) -> int:
        return self.leaves * VIEWS

    def path(self, node: int) -> tuple[str, ...]:
        """Return the names of a namespace from the root."""
        names = []
        while node > 0:
            names.append(f"NS_{node}")
            node = (node - 1) // WIDTH
        return (self.root, *reversed(names))

    @property
    def root(self) -> str:
        return f"NS_0_{self.mark}"

    def levels(self) -> Iterator[range]:
        """Yield the nodes of each level, the root's first, so that no child is created before its parent."""
        first = 0
        for level in range(self.depth):
            count = WIDTH**level
            yield range(first, first + count)
            first += count

    def in_leaves(self, letter: str, count: int) -> Iterator[tuple[tuple[str, ...], str]]:
        """Yield path and name of `count` entities per leaf: T_0, T_1, ... as the report numbers them."""
        first = self.namespaces - self.leaves
        for leaf in range(self.leaves):
            path = self.path(first + leaf)
            for number in range(count):
                yield path, f"{letter}_{leaf * count + number}"
