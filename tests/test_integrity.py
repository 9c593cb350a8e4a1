"""Tests of seals: provisioned files are checked before each use, and compared by hash on request."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tidemark import integrity
from tidemark.errors import ProvisionError


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "made"
    (folder / "below").mkdir(parents=True)
    (folder / "one").write_bytes(b"one")
    (folder / "below" / "two").write_bytes(b"two")
    (folder / "link").symlink_to("one")
    integrity.seal(folder)
    return folder


def unseen(path: Path) -> None:
    """Change a byte in place and restore the file's time: only its hash shows the change."""
    before = path.stat()
    with path.open("r+b") as file:
        byte = file.read(1)
        file.seek(0)
        file.write(bytes([byte[0] ^ 1]))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    after = path.stat()
    assert (after.st_size, after.st_mtime_ns, after.st_ino) == (before.st_size, before.st_mtime_ns, before.st_ino)


def replaced(path: Path) -> None:
    beside = path.with_name("beside")
    beside.write_bytes(path.read_bytes()[::-1])
    beside.replace(path)


def test_untouched_folder_is_intact(folder: Path) -> None:
    assert integrity.differences(folder) == integrity.differences(folder, by_hash=True) == []
    assert integrity.is_whole(folder)
    assert {path.name for path in folder.parent.iterdir()} == {"made", ".made.seal"}
    (folder / "__pycache__").mkdir()
    (folder / "__pycache__" / "two.pyc").write_bytes(b"new")
    assert integrity.is_whole(folder), "Python keeps byte code there"


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        (lambda folder: replaced(folder / "one"), "one was changed"),
        (lambda folder: (folder / "below" / "two").write_bytes(b"tvo"), "two was changed"),
        (lambda folder: (folder / "below" / "two").unlink(), "two is missing"),
        (lambda folder: ((folder / "link").unlink(), (folder / "link").symlink_to("below/two")), "link was changed"),
    ],
)
def test_changed_file_is_named_and_never_used(
    folder: Path, fault: Callable[[Path], object], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    fault(folder)
    (found,) = integrity.differences(folder) or []
    assert said in found
    assert not integrity.is_whole(folder)
    integrity.clear(folder)
    assert not folder.exists() and said in capsys.readouterr().err


def test_silently_changed_byte_is_detected_only_by_hash(folder: Path) -> None:
    unseen(folder / "one")
    assert integrity.differences(folder) == []
    assert integrity.differences(folder, by_hash=True) == [f"{folder / 'one'} was changed"]


def test_copied_folder_is_intact(folder: Path, tmp_path: Path) -> None:
    copied = tmp_path / "elsewhere" / "made"
    shutil.copytree(folder, copied, symlinks=True)
    shutil.copy(integrity.seal_path(folder), integrity.seal_path(copied))
    os.utime(copied / "one", ns=(1, 1))
    assert integrity.is_whole(copied)
    sealed = integrity.read(copied)
    assert sealed is not None and sealed["one"][1] == 1, "and costs a look by hash only once"
    replaced(copied / "one")
    assert not integrity.is_whole(copied)


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"files": {"one": []}}', "\x00"])
def test_unreadable_seal_counts_as_none(folder: Path, text: str) -> None:
    integrity.seal_path(folder).write_text(text)
    assert integrity.differences(folder) is None and not integrity.is_whole(folder)


def test_nix_store_is_trusted_and_gets_no_seal(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NIX_STORE", str(folder.parent))
    replaced(folder / "one")
    assert integrity.is_whole(folder)
    integrity.seal_path(folder).unlink(missing_ok=True)
    integrity.seal(folder)
    assert not integrity.seal_path(folder).exists()


def test_read_only_cache_is_used_or_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(integrity, "_is_writable", lambda _folder: False)  # the tests may run as root, which can write
    assert integrity.is_whole(folder)
    replaced(folder / "one")
    with pytest.raises(ProvisionError, match=r"one was changed.*cannot be written to"):
        integrity.is_whole(folder)
    integrity.seal_path(folder).unlink(missing_ok=True)
    assert integrity.is_whole(folder), "there is nothing to compare with"
