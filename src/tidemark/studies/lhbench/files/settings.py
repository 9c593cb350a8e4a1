"""Part `files`: the cost of a query before it reads data, for a table with many files (section 3.4)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from tidemark.studies.lhbench.settings import LhbenchSection, LhbenchSettings

FILES = "files"


@dataclass(frozen=True, slots=True)
class FilesSettings(LhbenchSettings):
    """Settings of one session per number of files, so that what an engine caches of one table cannot help the next."""

    word: ClassVar[str] = FILES

    files: int
    rows: int  # per file

    @property
    def label(self) -> str:
        return f"{self.word}-{self.files}"

    @classmethod
    def cells(cls, section: LhbenchSection, sizes: Mapping[str, Any]) -> Iterator[Self]:
        for files in sorted(sizes["counts"]):
            yield cls(part=FILES, iterations=sizes["iterations"], seed=section.seed, files=files, rows=sizes["rows"])
