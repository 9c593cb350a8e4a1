"""Helpers that build invalid archives and check that they are refused."""

from __future__ import annotations

import hashlib
import json
import re
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from tidemark.errors import AnalysisError
from tidemark.results.archive.crate import METADATA
from tidemark.results.archive.unpack import PLAN, unpack_archive


def rewritten(archive: Path, target: Path, change: Callable[[dict[str, bytes]], dict[str, bytes]]) -> Path:
    with zipfile.ZipFile(archive) as file:
        content = {name: file.read(name) for name in file.namelist()}
    with zipfile.ZipFile(target, "w") as file:
        for name, data in change(content).items():
            file.writestr(name, data)
    return target


def listing(content: dict[str, bytes], name: str, data: bytes) -> dict[str, bytes]:
    """Return `content` with one more file, listed correctly in the metadata."""
    crate = json.loads(content[METADATA])
    entry = {"@id": name, "@type": "File", "contentSize": str(len(data)), "sha256": hashlib.sha256(data).hexdigest()}
    crate["@graph"].append(entry)
    return {**content, METADATA: json.dumps(crate).encode(), name: data}


def refused(archive: Path, tmp_path: Path, message: str) -> None:
    target = tmp_path / "unpacked" / "here"
    with pytest.raises(AnalysisError) as caught:
        unpack_archive(archive, target)
    assert message in str(caught.value) and str(archive) in str(caught.value)
    assert not target.exists() and not list(tmp_path.glob("**/escaped*"))


def relisted(content: dict[str, bytes], name: str, data: bytes) -> dict[str, bytes]:
    """Return `content` with the data of a file replaced and its metadata entry updated."""
    crate = json.loads(content[METADATA])
    crate["@graph"] = [each for each in crate["@graph"] if each["@id"] != name]
    return listing({**content, METADATA: json.dumps(crate).encode()}, name, data)


def relisted_in(archive: Path, target: Path, name: str, data: bytes) -> Path:
    return rewritten(archive, target, lambda content: relisted(content, name, data))


def planned(**changes: object) -> Callable[[dict[str, bytes]], dict[str, bytes]]:
    """Return a function that changes the plan's first series and updates the plan's metadata entry."""

    def change(content: dict[str, bytes]) -> dict[str, bytes]:
        plan = json.loads(content[PLAN])
        plan["series"][0] |= changes
        return relisted(content, PLAN, json.dumps(plan).encode())

    return change


def bomb(archive: Path, target: Path, name: str, size: int, method: int = zipfile.ZIP_DEFLATED) -> Path:
    """Write `archive` to `target` with one more file of `size` zero bytes (a multiple of 1 MiB); return `target`."""
    summed, zeros = hashlib.sha256(), bytes(1 << 20)
    for _ in range(size >> 20):
        summed.update(zeros)
    with zipfile.ZipFile(archive) as file, zipfile.ZipFile(target, "w", method, compresslevel=1) as made:
        for each in file.namelist():
            data = file.read(each)
            if each == METADATA:
                crate = json.loads(data)
                entry = {"@id": name, "@type": "File", "contentSize": str(size), "sha256": summed.hexdigest()}
                crate["@graph"].append(entry)
                data = json.dumps(crate).encode()
            made.writestr(each, data, zipfile.ZIP_STORED)
        with made.open(zipfile.ZipInfo(name) if method == zipfile.ZIP_STORED else packed(name, method), "w") as stream:
            for _ in range(size >> 20):
                stream.write(zeros)
    return target


def packed(name: str, method: int) -> zipfile.ZipInfo:
    entry = zipfile.ZipInfo(name)
    entry.compress_type = method
    return entry


def kept_as_it_was(bad: Path, root: Path, message: str) -> None:
    """Check that unpacking `bad` over earlier results in `root` is refused and leaves them unchanged."""
    for name in ("results/runs/old/run.json", "results/plan.json", "envs/old.lock"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(name)
    before = {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}
    with pytest.raises(AnalysisError, match=re.escape(message)):
        unpack_archive(bad, root)
    assert {path: path.read_bytes() for path in root.rglob("*") if path.is_file()} == before
