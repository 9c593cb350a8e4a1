"""Residency, eviction and the verdict, on real files in the real page cache."""

from __future__ import annotations

import functools
import mmap
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tidemark.machine import cold
from tidemark.machine.cold import Method, evict, prove, residency
from tidemark.runs.proofs import Residency, Verdict

SIZE = 4 << 20
ATTEMPTS = 5


def undisturbed[**P](test: Callable[P, None]) -> Callable[P, None]:
    """Repeat a failed test with a file just written: the kernel may reclaim pages of a file at any moment.

    A wrong count of pages fails each time.
    """

    @functools.wraps(test)
    def repeated(*args: P.args, **kwargs: P.kwargs) -> None:
        for attempt in range(1, ATTEMPTS + 1):
            try:
                return test(*args, **kwargs)
            except AssertionError:
                if attempt == ATTEMPTS:
                    raise
                written = kwargs.get("file")
                if isinstance(written, Path):
                    written.write_bytes(os.urandom(SIZE))
        return None

    return repeated


@pytest.fixture
def folder() -> Iterator[Path]:
    """Yield a folder on the repository's own disk: a tmpfs is memory, from which nothing can be evicted."""
    with tempfile.TemporaryDirectory(prefix=".cold-", dir=Path(__file__).parent) as name:
        yield Path(name)


@pytest.fixture
def file(folder: Path) -> Path:
    path = folder / "written"
    path.write_bytes(os.urandom(SIZE))
    return path


@pytest.mark.parametrize("method", [Method.EVICT_FILES, Method.EVICT, Method.REBOOT])
@undisturbed
def test_file_is_resident_once_written_not_once_evicted_and_again_once_read(file: Path, method: Method) -> None:
    if method is not Method.EVICT_FILES and not cold.may_drop_caches():
        pytest.skip("dropping the page cache needs root")
    assert residency([file]) == Residency(SIZE, SIZE)
    evict(method, [file])
    assert residency([file]).share < 0.01
    assert residency([file]).share < 0.01, "asking does not read"
    file.read_bytes()
    assert residency([file]).share > 0.99


@undisturbed
def test_method_none_evicts_nothing(file: Path) -> None:
    evict(Method.NONE, [file])
    assert residency([file]).share == 1.0


@pytest.mark.filterwarnings("ignore:This process")
def test_files_are_evicted_one_by_one_without_root(file: Path, folder: Path) -> None:
    """Evict files as the account that owns them; a fork does so, because giving up an account is permanent."""
    if os.geteuid() == 0:
        folder.chmod(0o755)
        os.chown(file, 65534, 65534)
    child = os.fork()
    if child == 0:  # pragma: no cover
        try:
            if os.geteuid() == 0:
                os.setresuid(65534, 65534, 65534)
            chosen = {cold.choose("auto"), cold.choose("evict")}
            # In a user namespace a user id other than 0 can still be root.
            good = chosen == {Method.EVICT if cold.may_drop_caches() else Method.EVICT_FILES}
            evict(Method.EVICT_FILES, [file])
            measured = prove(Method.EVICT_FILES, {"data": [file]})
            os._exit(0 if good and measured.verdict == Verdict.COLD else 1)
        except BaseException:
            os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@undisturbed
def test_half_a_file_is_half_resident(file: Path) -> None:
    evict(Method.EVICT_FILES, [file])
    with file.open("rb", buffering=0) as opened:
        os.posix_fadvise(opened.fileno(), 0, 0, os.POSIX_FADV_RANDOM)  # no read-ahead
        for offset in range(0, SIZE // 2, mmap.PAGESIZE):
            os.pread(opened.fileno(), mmap.PAGESIZE, offset)
    assert residency([file]) == Residency(SIZE, SIZE // 2)


@undisturbed
def test_exact_sizes_count_and_missing_files_do_not(folder: Path) -> None:
    (folder / "odd").write_bytes(b"x" * (mmap.PAGESIZE + 1))
    (folder / "empty").touch()
    found = residency([folder / "odd", folder / "empty", folder / "missing", folder])
    assert found == Residency(mmap.PAGESIZE + 1, mmap.PAGESIZE + 1)


@pytest.mark.filterwarnings("ignore:This process")
def test_files_of_other_accounts_are_left_out(file: Path, folder: Path) -> None:
    """Leave them out: the kernel reports every page of them as resident, which would make a cold machine look hot."""
    if os.geteuid() != 0:
        pytest.skip("making a file of another account needs root")
    folder.chmod(0o755)
    file.chmod(0o644)
    child = os.fork()
    if child == 0:  # pragma: no cover
        try:
            os.setresuid(65534, 65534, 65534)
            os._exit(0 if residency([file]) == Residency(0, 0) else 1)
        except BaseException:
            os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@undisturbed
def test_verdict_follows_from_the_numbers_not_from_the_method(file: Path, folder: Path) -> None:
    small = folder / "small"
    small.write_bytes(os.urandom(SIZE // 8))
    files = {"programs": [file], "data": [small]}
    assert prove(Method.EVICT, files).verdict == Verdict.HOT, "the method was not applied"
    evict(Method.EVICT_FILES, [file, small])
    proof = prove(Method.NONE, files)
    assert proof.verdict == Verdict.COLD and proof.method == "none"
    assert dict(proof.residency)["programs"].bytes == SIZE
    small.read_bytes()
    proof = prove(Method.EVICT_FILES, files)
    assert proof.verdict == Verdict.LUKEWARM, "a ninth of all bytes"
    assert f"{9 * SIZE // 8:,} bytes" in proof.reason
    assert proof.boot_id == Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    assert proof.uptime_s > 0


def test_verdict_without_files_is_unknown(folder: Path) -> None:
    assert prove(Method.EVICT, {"data": [folder / "missing"]}).verdict == Verdict.UNKNOWN
    assert prove(Method.NONE, {}).verdict == Verdict.UNKNOWN


def test_chosen_method_is_one_that_the_account_may_use(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cold, "may_drop_caches", lambda: True)
    assert [cold.choose(wanted) for wanted in ("auto", "evict", "none", "reboot")] == [
        Method.EVICT,
        Method.EVICT,
        Method.NONE,
        Method.REBOOT,
    ]
    monkeypatch.setattr(cold, "may_drop_caches", lambda: False)
    assert cold.choose("auto") is cold.choose("evict") is Method.EVICT_FILES


MAP = """
import mmap, sys
with open(sys.argv[1], "rb") as file:
    mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
print(sum(mapped[place] for place in range(0, len(mapped), 4096)), flush=True)
input()
"""


@undisturbed
def test_pages_that_a_process_has_mapped_are_taken_out_of_it_first(file: Path) -> None:
    if not cold.may_drop_caches():
        pytest.skip("dropping the page cache needs root")
    os.sync()
    child = subprocess.Popen([sys.executable, "-c", MAP, file], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        assert child.stdout is not None
        child.stdout.readline()
        assert any(path == file for _, _, path in cold.mapped_ranges(child.pid))
        evict(Method.EVICT, [file])
        assert residency([file]).share > 0.9, "a mapped file stays; else there is nothing to see here"
        cold.page_out([child.pid])
        evict(Method.EVICT, [file])
        if residency([file]).share > 0.9:
            pytest.skip("this kernel does not let one process take pages out of another")
        assert residency([file]).share < 0.01
    finally:
        child.kill()
        child.communicate()
    cold.page_out([child.pid])  # a process that has ended is no error


@undisturbed
def test_groups_set_apart_are_shown_and_do_not_affect_the_verdict(file: Path, folder: Path) -> None:
    broker = folder / "broker"
    broker.write_bytes(os.urandom(SIZE))
    os.sync()
    evict(Method.EVICT_FILES, [file])
    proof = prove(Method.EVICT_FILES, {"table": [file]}, {"kafka program": [broker]})
    assert proof.verdict == Verdict.COLD
    assert dict(proof.residency)["kafka program"] == Residency(SIZE, SIZE) and proof.apart == ("kafka program",)
    assert prove(Method.EVICT_FILES, {}, {"kafka program": [broker]}).verdict == Verdict.UNKNOWN


def test_client_libraries_are_found_without_importing_them() -> None:
    found = cold.library_files(["_duckdb", "duckdb_extension_*", "pyarrow"])
    names = {path.name for path in found}
    assert any("duckdb" in name and ".so" in name for name in names)
    assert "ducklake.duckdb_extension" in names and any(name.startswith("libarrow.so") for name in names)
    assert not any(path.suffix == ".py" for path in found)
    assert cold.library_files(["no_such_package"]) == ()
