"""Choice of the source of trips, and the download from an HTTP server on this machine."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tidemark.dataset import acquire
from tidemark.dataset.download import ATTEMPTS, Pinned, can_download, download
from tidemark.dataset.model import GREEN, raw_schema
from tidemark.dataset.synthetic import write_replica
from tidemark.errors import ConfigError, DatasetError, HashMismatch
from tidemark.paths import Workspace
from tidemark.settings import DatasetConfig

FILE = "yellow_tripdata_2025-11.parquet"
ROWS = 3000


@dataclass
class Behaviour:
    """Content that the server has, and the way it serves it; `asked` is the Range of each GET."""

    content: bytes
    ranges: bool = True
    break_after: int | None = None  # bytes of an answer, after which the connection is closed
    shift: int = 0  # bytes by which the range that it sends is off
    status: int = 200
    asked: list[str | None] = field(default_factory=list)


@pytest.fixture
def behaviour(tmp_path: Path) -> Behaviour:
    path = tmp_path / "source.parquet"
    write_replica(path, ROWS, 4)
    content = path.read_bytes()
    path.unlink()
    return Behaviour(content)


@pytest.fixture
def base(behaviour: Behaviour) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_HEAD(self) -> None:
            self.send_response(behaviour.status)
            self.send_header("Content-Length", str(len(behaviour.content)))
            self.end_headers()

        def do_GET(self) -> None:
            asked = self.headers.get("Range")
            behaviour.asked.append(asked)
            start = 0
            if asked and behaviour.ranges:
                start = int(asked.removeprefix("bytes=").removesuffix("-")) + behaviour.shift
                self.send_response(206)
                last = len(behaviour.content) - 1
                self.send_header("Content-Range", f"bytes {start}-{last}/{len(behaviour.content)}")
            else:
                self.send_response(behaviour.status)
            rest = behaviour.content[start:]
            self.send_header("Content-Length", str(len(rest)))
            self.end_headers()
            self.wfile.write(rest[: behaviour.break_after])

        def log_message(self, format: str, *args: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def pinned(behaviour: Behaviour, base: str) -> Pinned:
    content = behaviour.content
    return Pinned(FILE, ROWS, len(content), hashlib.sha256(content).hexdigest(), base)


@pytest.fixture
def offline(pinned: Pinned) -> Pinned:
    """Return the same file at an address where nothing listens."""
    return replace(pinned, base="http://127.0.0.1:9/")


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return Workspace(tmp_path / "workspace")


@pytest.fixture
def raw(workspace: Workspace) -> Path:
    folder = workspace.data / "raw"
    folder.mkdir(parents=True)
    return folder


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_file_is_downloaded_completely(pinned: Pinned, behaviour: Behaviour, raw: Path) -> None:
    assert download(pinned, raw).read_bytes() == behaviour.content
    assert names(raw) == [FILE]
    assert behaviour.asked == [None]


def test_partial_download_is_resumed(pinned: Pinned, behaviour: Behaviour, raw: Path) -> None:
    (raw / f"{FILE}.part").write_bytes(behaviour.content[:1000])
    assert download(pinned, raw).read_bytes() == behaviour.content
    assert behaviour.asked == ["bytes=1000-"]


def test_part_with_all_bytes_is_only_checked(pinned: Pinned, behaviour: Behaviour, raw: Path) -> None:
    (raw / f"{FILE}.part").write_bytes(behaviour.content)
    assert download(pinned, raw).read_bytes() == behaviour.content
    assert behaviour.asked == []


def test_part_that_is_too_long_is_downloaded_again(pinned: Pinned, behaviour: Behaviour, raw: Path) -> None:
    (raw / f"{FILE}.part").write_bytes(behaviour.content + b"more")
    assert download(pinned, raw).read_bytes() == behaviour.content
    assert behaviour.asked == [None]


def test_server_without_ranges_sends_the_file_again(pinned: Pinned, behaviour: Behaviour, raw: Path) -> None:
    behaviour.ranges = False
    (raw / f"{FILE}.part").write_bytes(b"x" * 1000)
    assert download(pinned, raw).read_bytes() == behaviour.content


def test_broken_downloads_resume_where_they_stopped(pinned: Pinned, behaviour: Behaviour, raw: Path) -> None:
    behaviour.break_after = len(behaviour.content) // 8 + 1
    assert download(pinned, raw).read_bytes() == behaviour.content
    assert len(behaviour.asked) == 8


def test_server_that_sends_nothing_is_given_up_and_the_part_kept(
    pinned: Pinned, behaviour: Behaviour, raw: Path
) -> None:
    (raw / f"{FILE}.part").write_bytes(behaviour.content[:700])
    behaviour.break_after = 0
    with pytest.raises(DatasetError, match=rf"broke {ATTEMPTS} times.*700 of .* bytes are kept.*go on from there"):
        download(pinned, raw)
    assert (raw / f"{FILE}.part").read_bytes() == behaviour.content[:700]
    assert not (raw / FILE).exists()


def test_wrong_content_is_refused_with_both_hashes_and_removed(pinned: Pinned, behaviour: Behaviour, raw: Path) -> None:
    behaviour.content = behaviour.content[:-1] + b"?"
    found = hashlib.sha256(behaviour.content).hexdigest()
    with pytest.raises(HashMismatch) as caught:
        download(pinned, raw)
    assert pinned.sha256 in str(caught.value)
    assert found in str(caught.value)
    assert names(raw) == []


def test_file_of_another_size_is_not_downloaded(pinned: Pinned, behaviour: Behaviour, raw: Path) -> None:
    behaviour.content += b"more"
    with pytest.raises(DatasetError, match=r"offers .* bytes, the pinned file has"):
        download(pinned, raw)
    assert behaviour.asked == []


def test_unexpected_number_of_rows_is_refused(pinned: Pinned, raw: Path) -> None:
    with pytest.raises(DatasetError, match=r"found 3,000 rows; the pinned file has 2,999"):
        download(replace(pinned, rows=ROWS - 1), raw)
    assert names(raw) == []


def test_range_that_was_not_requested_is_refused(pinned: Pinned, behaviour: Behaviour, raw: Path) -> None:
    behaviour.shift = 5
    (raw / f"{FILE}.part").write_bytes(behaviour.content[:1000])
    with pytest.raises(DatasetError, match=r"asked for bytes from 1,000, was sent those from 1,005"):
        download(pinned, raw)


def test_can_download_reports_reachability(pinned: Pinned, offline: Pinned, behaviour: Behaviour) -> None:
    assert can_download(pinned)[0]
    assert can_download(offline)[0] is False
    assert "not reachable (ConnectionRefusedError" in can_download(offline)[1]
    behaviour.status = 404
    assert can_download(pinned) == (False, f"{pinned.address}: answered 404 Not Found")


def test_auto_uses_the_given_path(workspace: Workspace, offline: Pinned, tmp_path: Path) -> None:
    write_replica(tmp_path / "mine.parquet", 10, 1)
    acquired = acquire(DatasetConfig(path=(tmp_path / "mine.parquet",)), 0, workspace, offline)
    assert (acquired.source, acquired.name, acquired.rows, acquired.synthetic) == ("path", "mine", 10, False)
    assert acquired.sha256 == hashlib.sha256((tmp_path / "mine.parquet").read_bytes()).hexdigest()


def test_missing_path_is_an_error_even_in_auto(workspace: Workspace, offline: Pinned, tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match="no such file"):
        acquire(DatasetConfig(path=(tmp_path / "absent.parquet",)), 0, workspace, offline)
    assert not (workspace.data / "synthetic").exists()


def test_months_of_two_kinds_are_refused(workspace: Workspace, tmp_path: Path) -> None:
    schema = raw_schema(GREEN)
    pq.write_table(pa.table([pa.nulls(2, each.type) for each in schema], schema=schema), tmp_path / "g.parquet")
    write_replica(tmp_path / "y.parquet", 10, 1)
    with pytest.raises(DatasetError, match=r"g\.parquet: a green month, but .*y\.parquet is a yellow one"):
        acquire(DatasetConfig(path=(tmp_path / "y.parquet", tmp_path / "g.parquet")), 0, workspace)


def test_digest_of_several_months_depends_on_their_order(workspace: Workspace, tmp_path: Path) -> None:
    paths = tmp_path / "a.parquet", tmp_path / "b.parquet"
    for seed, path in enumerate(paths):
        write_replica(path, 10, seed)
    one = acquire(DatasetConfig(path=paths), 0, workspace)
    other = acquire(DatasetConfig(path=paths[::-1]), 0, workspace)
    assert one.name == "a and 1 more"
    assert len({one.sha256, other.sha256, one.raw[0].sha256}) == 3


def test_auto_uses_the_verified_raw_file(
    workspace: Workspace, offline: Pinned, raw: Path, behaviour: Behaviour
) -> None:
    (raw / FILE).write_bytes(behaviour.content)
    acquired = acquire(DatasetConfig(), 0, workspace, offline)
    assert (acquired.source, acquired.rows) == ("raw", ROWS)
    assert acquired.notes == ("path: none is given in dataset.path",)


def test_auto_downloads_a_missing_file_and_finds_it_the_next_time(
    workspace: Workspace, pinned: Pinned, behaviour: Behaviour, capsys: pytest.CaptureFixture[str]
) -> None:
    first = acquire(DatasetConfig(), 0, workspace, pinned)
    assert (first.source, first.sha256) == ("download", pinned.sha256)
    assert "dataset: raw: data/raw/yellow_tripdata_2025-11.parquet: no such file" in capsys.readouterr().err
    assert acquire(DatasetConfig(), 0, workspace, pinned).source == "raw"
    assert len(behaviour.asked) == 1


def test_a_wrong_raw_file_is_reported_and_set_aside_by_the_download(
    workspace: Workspace, pinned: Pinned, raw: Path
) -> None:
    (raw / FILE).write_bytes(b"PAR1 something else")
    acquired = acquire(DatasetConfig(), 0, workspace, pinned)
    assert acquired.source == "download"
    assert "has sha256" in acquired.notes[1]
    assert (raw / f"{FILE}.replaced").read_bytes() == b"PAR1 something else"


def test_auto_falls_back_to_the_replica_and_reports_why(
    workspace: Workspace, offline: Pinned, raw: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (raw / FILE).write_bytes(b"wrong")
    acquired = acquire(DatasetConfig(synthetic_rows=50), 6, workspace, offline)
    assert (acquired.source, acquired.synthetic, acquired.rows) == ("synthetic", True, 50)
    assert [note.split(":")[0] for note in acquired.notes] == ["path", "raw", "download", "synthetic"]
    assert "not reachable" in acquired.notes[2]
    said = capsys.readouterr().err
    assert all(f"dataset: {note}" in said for note in acquired.notes[:3])
    assert "using source 'synthetic': 50 SYNTHETIC trips" in said
    assert str(workspace.root) not in "".join(acquired.notes)
    assert (raw / FILE).read_bytes() == b"wrong"


def test_auto_does_not_keep_a_download_with_another_hash(
    workspace: Workspace, pinned: Pinned, behaviour: Behaviour
) -> None:
    behaviour.content = behaviour.content[:-1] + b"?"
    acquired = acquire(DatasetConfig(synthetic_rows=5), 0, workspace, pinned)
    assert acquired.source == "synthetic"
    assert pinned.sha256 in acquired.notes[2]
    assert names(workspace.data / "raw") == []


def test_explicit_sources_do_not_fall_back(workspace: Workspace, offline: Pinned) -> None:
    with pytest.raises(DatasetError, match=r"data/raw/.*no such file"):
        acquire(DatasetConfig(source="raw"), 0, workspace, offline)
    with pytest.raises(DatasetError, match=r"not reachable.*data/raw.*dataset\.path.*synthetic"):
        acquire(DatasetConfig(source="download"), 0, workspace, offline)
    assert not (workspace.data / "synthetic").exists()


def test_wrong_raw_file_is_refused_if_requested(workspace: Workspace, offline: Pinned, raw: Path) -> None:
    (raw / FILE).write_bytes(b"wrong")
    with pytest.raises(DatasetError, match=r"has sha256 \w+, the pinned file \w+; it is not used"):
        acquire(DatasetConfig(source="raw"), 0, workspace, offline)


def test_source_path_needs_a_path(workspace: Workspace) -> None:
    with pytest.raises(ConfigError, match=r"dataset\.path.*found nothing"):
        acquire(DatasetConfig(source="path"), 0, workspace)
