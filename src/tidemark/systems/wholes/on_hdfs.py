"""Whole tables on HDFS: where they are, how their files come back, which servers they need."""

from __future__ import annotations

import shutil
import tempfile
from abc import abstractmethod
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from tidemark.paths import private_directory
from tidemark.services.base import Service
from tidemark.services.hdfs.servers import USER, DataNode, NameNode
from tidemark.systems import duckdb_client
from tidemark.systems.wholes.kind import WholeSystem

ONE_COPY = "HDFS keeps one copy of each block, on one DataNode of this machine: no network and no second copy is timed"
FROM_MEMORY = "the DataNode leaves blocks to the page cache"
FETCHED = "of files fetched over HTTP (WebHDFS)"


class OnHdfs(WholeSystem):
    """What the servers of HDFS say of its files, they say over HTTP."""

    notes: tuple[str, ...] = (ONE_COPY, FROM_MEMORY)
    needs: ClassVar[tuple[type[Service], ...]] = (NameNode, DataNode)

    @property
    def names(self) -> NameNode:
        names = self.context.services[NameNode]
        assert isinstance(names, NameNode)
        return names

    def environment(self) -> Mapping[str, str]:
        return {"HADOOP_USER_NAME": USER}

    def order(self, processors: Collection[int]) -> dict[str, Any]:
        return {**super().order(processors), "names": self.names.address}

    def path(self, name: str) -> str:
        """No two runs use one path: the folder's name is that of the run, and servers are of one sitting."""
        return f"/{self.context.directory.name}/{name}"

    def address(self, name: str) -> str:
        return f"{self.names.address}{self.path(name)}"

    def fetched(self, name: str, folder: Path) -> Path:
        self.names.web.fetch(self.path(name), private_directory(folder))
        return folder

    def listed(self, name: str) -> Mapping[str, int]:
        return {each.path.as_posix(): each.size for each in self.names.web.listed(self.path(name))}

    def remove(self, name: str) -> None:
        self.names.web.remove(self.path(name))


class ParquetOnHdfs(OnHdfs):
    """Tables whose rows are those of some files of Parquet below their folders, and that keep no count of them."""

    @abstractmethod
    def parquet(self, place: Path) -> Sequence[Path]:
        """The files that hold the rows of the table that `fetched` returned the place of."""

    def relation(self, place: Path) -> str:
        files = ", ".join(map(duckdb_client.literal, self.parquet(place)))
        return f"read_parquet([{files}])"

    def counted(self, name: str) -> int:
        """By the footers of its files: they are all fetched."""
        import pyarrow.parquet as pq

        folder = Path(tempfile.mkdtemp(dir=self.context.directory))
        try:
            return sum(pq.read_metadata(path).num_rows for path in self.parquet(self.fetched(name, folder / name)))
        finally:
            shutil.rmtree(folder)
