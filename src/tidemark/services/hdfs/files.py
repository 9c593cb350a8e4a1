"""HDFS files over HTTP (WebHDFS), as the servers report them, independent of the client libraries under test."""

from __future__ import annotations

import json
import shutil
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import quote, urlencode

from tidemark.errors import ServiceError
from tidemark.paths import private_directory
from tidemark.services.http import open_url

ANSWER_S = 120.0


@dataclass(frozen=True, slots=True)
class Listed:
    """A file below a folder of HDFS."""

    path: PurePosixPath  # relative to that folder
    size: int  # bytes


@dataclass(frozen=True, slots=True)
class WebHdfs:
    """WebHDFS client of the NameNode at `address`, http://host:port. Paths are absolute."""

    address: str

    def listed(self, folder: str) -> list[Listed]:
        """Return all files below `folder`, sorted by path; empty if the folder does not exist."""
        return sorted(self._below(folder, PurePosixPath()), key=lambda each: each.path)

    def _below(self, folder: str, inside: PurePosixPath) -> Iterator[Listed]:
        try:
            found = self._ask("GET", folder, op="LISTSTATUS")["FileStatuses"]["FileStatus"]
        except FileNotFoundError:
            return
        for each in found:
            name = each["pathSuffix"]
            if each["type"] == "DIRECTORY":
                yield from self._below(f"{folder}/{name}", inside / name)
            else:
                yield Listed(inside / name, int(each["length"]))

    def fetch(self, folder: str, target: Path) -> list[Listed]:
        """Copy all files below `folder` to the local folder `target`, which is created, and return their list."""
        files = self.listed(folder)
        for each in files:
            place = target / each.path
            private_directory(place.parent)
            with self._open("GET", f"{folder}/{each.path}", op="OPEN") as answer, place.open("wb") as file:
                shutil.copyfileobj(answer, file, 1 << 20)
            if place.stat().st_size != each.size:
                raise ServiceError(
                    f"HDFS reports that {folder}/{each.path} has {each.size:,} bytes, and gave {place.stat().st_size:,}"
                )
        return files

    def text(self, folder: str, suffix: str) -> str:
        """Return the concatenated content of the files below `folder` whose names end with `suffix`."""
        found = []
        for each in self.listed(folder):
            if each.path.name.endswith(suffix):
                with self._open("GET", f"{folder}/{each.path}", op="OPEN") as answer:
                    found.append(answer.read().decode())
        return "".join(found)

    def remove(self, folder: str) -> None:
        """Remove `folder` recursively; do nothing if it does not exist."""
        self._ask("DELETE", folder, op="DELETE", recursive="true")

    def _ask(self, method: str, path: str, **query: str) -> dict[str, Any]:
        with self._open(method, path, **query) as answer:
            return json.load(answer)  # type: ignore[no-any-return]

    def _open(self, method: str, path: str, **query: str) -> Any:
        request = urllib.request.Request(f"{self.address}/webhdfs/v1{quote(path)}?{urlencode(query)}", method=method)
        try:
            return open_url(request, ANSWER_S)
        except urllib.error.HTTPError as error:
            if error.code == 404:
                raise FileNotFoundError(path) from error
            said = error.read().decode(errors="replace")[:2000]
            raise ServiceError(f"HDFS refused {method} {path}: {said or error}") from error
        except OSError as error:
            raise ServiceError(f"HDFS does not answer {method} {path}: {error}") from error
