"""What a study's publication says of its own machine and software: shown beside what was found here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Publication:
    """`hardware` by part as tables name it, `software` (versions) by the name that programs go by.

    `optional` are programs that configurations may do without: they are listed all the same, as not used.
    """

    key: str  # of its columns in CSV and JSON, and of the stack that has its versions
    origin: str  # the heading of its columns
    hardware: Mapping[str, str] = field(default_factory=dict)
    software: Mapping[str, str] = field(default_factory=dict)
    optional: tuple[str, ...] = ()
