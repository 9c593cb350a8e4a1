"""Download of a pinned file: resumable, and kept only if its content is the pinned one."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path

import requests
import urllib3

from tidemark.dataset.files import full_disk_named, sha256_of
from tidemark.dataset.model import check
from tidemark.errors import DatasetError, HashMismatch
from tidemark.paths import private_directory, sync_directory
from tidemark.progress import Progress

CONNECT_SECONDS = 5.0
READ_SECONDS = 30.0
REACH_SECONDS = 8.0  # name resolution itself has no time limit
ATTEMPTS = 5
BLOCK_BYTES = 1 << 18


@dataclass(frozen=True, slots=True)
class Pinned:
    """File whose exact content is known in advance; `base` is the URL of its folder, ending in a slash."""

    file: str
    rows: int
    bytes: int
    sha256: str
    base: str

    @property
    def address(self) -> str:
        return self.base + self.file


YELLOW_2025_11 = Pinned(
    file="yellow_tripdata_2025-11.parquet",
    rows=4_181_444,
    bytes=71_134_255,
    sha256="2cf2f3127f96d4d5dea30f8afe05119cf8e4ba57bd9e60b789d3f296fc8459ab",
    base="https://d37ci6vzurychx.cloudfront.net/trip-data/",
)


class _Dropped(Exception):
    """Broken connection; received bytes are kept, and the next attempt continues from there."""


def can_download(pinned: Pinned = YELLOW_2025_11) -> tuple[bool, str]:
    """Return whether the pinned file can be downloaded, by a HEAD request of at most 8 s, and why (not)."""
    answers: list[tuple[bool, str]] = []
    asking = threading.Thread(target=lambda: answers.append(_ask(pinned)), daemon=True)
    asking.start()
    asking.join(REACH_SECONDS)
    return answers[0] if answers else (False, f"{pinned.address}: no answer within {REACH_SECONDS:.0f} s")


def _ask(pinned: Pinned) -> tuple[bool, str]:
    try:
        answer = requests.head(pinned.address, timeout=CONNECT_SECONDS, allow_redirects=True)
    except requests.RequestException as error:
        return False, f"{pinned.address}: not reachable ({_reason(error)})"
    if answer.status_code != HTTPStatus.OK:
        return False, f"{pinned.address}: answered {answer.status_code} {answer.reason}"
    size = answer.headers.get("Content-Length")
    if size is not None and int(size) != pinned.bytes:
        return False, f"{pinned.address}: offers {int(size):,} bytes, the pinned file has {pinned.bytes:,}"
    return True, f"{pinned.address}: {pinned.bytes:,} bytes"


def _reason(error: BaseException) -> str:
    """Describe the innermost cause: the outer ones only repeat the address and intermediate classes."""
    inner = error
    while (deeper := inner.__cause__ or inner.__context__) is not None:
        inner = deeper
    return f"{type(inner).__name__}: {inner}"


def download(pinned: Pinned, folder: Path) -> Path:
    """Download the pinned file into `folder` and return its path.

    Received bytes go to a `.part` file next to it, from which a later call continues. Raises DatasetError if
    the address cannot be reached or offers another file (the part is kept for the next attempt if it may
    still be valid), and HashMismatch, keeping nothing, if all bytes arrived and are not the pinned ones.
    """
    reachable, reason = can_download(pinned)
    if not reachable:
        raise DatasetError(
            f"{reason}. Fetch it elsewhere and put it into data/raw, give a month as dataset.path, "
            "or use the replica (dataset.source: synthetic)."
        )
    private_directory(folder)
    part = folder / f"{pinned.file}.part"
    with full_disk_named(part), Progress(f"download of {pinned.file}", pinned.bytes, " bytes") as progress:
        _fetch_all(pinned, part, progress)
    found = sha256_of(part)
    if found != pinned.sha256:
        part.unlink()
        raise HashMismatch(pinned.address, pinned.sha256, found)
    rows = check(part).rows
    if rows != pinned.rows:
        part.unlink()
        raise DatasetError(f"{pinned.address}: found {rows:,} rows; the pinned file has {pinned.rows:,}.")
    target = folder / pinned.file
    if target.exists():
        target.replace(folder / f"{pinned.file}.replaced")
    part.replace(target)
    sync_directory(folder)
    return target


def _fetch_all(pinned: Pinned, part: Path, progress: Progress) -> None:
    failures = 0
    while (have := part.stat().st_size if part.exists() else 0) != pinned.bytes:
        if have > pinned.bytes:
            part.unlink()
            continue
        try:
            _fetch(pinned, part, have, progress)
        except (_Dropped, requests.RequestException, urllib3.exceptions.HTTPError) as error:
            now = part.stat().st_size if part.exists() else 0
            failures = failures + 1 if now <= have else 0
            if failures == ATTEMPTS:
                raise DatasetError(
                    f"{pinned.address}: the connection broke {ATTEMPTS} times in a row ({_reason(error)}). "
                    f"{now:,} of {pinned.bytes:,} bytes are kept in {part}; "
                    "run the command again to go on from there."
                ) from error


def _fetch(pinned: Pinned, part: Path, have: int, progress: Progress) -> None:
    """Send one request and append the bytes after the first `have`, or start over if ranges are not served."""
    # With transport compression, the bytes would not be those that the range counts.
    headers = {"Accept-Encoding": "identity", **({"Range": f"bytes={have}-"} if have else {})}
    with requests.get(pinned.address, headers=headers, stream=True, timeout=(CONNECT_SECONDS, READ_SECONDS)) as answer:
        if answer.status_code == HTTPStatus.PARTIAL_CONTENT:
            begins, whole = _range(pinned, answer)
            if begins != have:
                raise DatasetError(f"{pinned.address}: asked for bytes from {have:,}, was sent those from {begins:,}.")
        elif answer.status_code == HTTPStatus.OK:
            have = 0
            whole = int(answer.headers.get("Content-Length", pinned.bytes))
        else:
            raise DatasetError(f"{pinned.address}: answered {answer.status_code} {answer.reason}.")
        if whole != pinned.bytes:
            part.unlink(missing_ok=True)
            raise DatasetError(
                f"{pinned.address}: offers {whole:,} bytes; the pinned file has {pinned.bytes:,}. Nothing was kept."
            )
        with part.open("r+b" if have else "wb") as file:
            file.seek(have)
            # Received bytes are written at once: a full block would be lost with the connection.
            while block := answer.raw.read1(BLOCK_BYTES):
                # Bytes beyond the announced size are dropped, so that they cannot fill the disk.
                file.write(block[: pinned.bytes - have])
                have += len(block)
                progress.update(min(have, pinned.bytes))
        if have < pinned.bytes:
            raise _Dropped(f"the server closed the connection after {have:,} bytes")


def _range(pinned: Pinned, answer: requests.Response) -> tuple[int, int]:
    """Return the first byte and the total size from a header such as `Content-Range: bytes 100-199/200`."""
    said = answer.headers.get("Content-Range", "")
    try:
        unit, place = said.split(" ", 1)
        span, whole = place.split("/", 1)
        if unit != "bytes":
            raise ValueError(unit)
        return int(span.split("-", 1)[0]), int(whole)
    except ValueError as error:
        raise DatasetError(f"{pinned.address}: sent the Content-Range {said!r}, which contains no range.") from error
