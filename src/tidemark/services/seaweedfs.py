"""SeaweedFS as an S3 server on loopback, for the metadata files of catalogs that do not use a file system.

One process is master, volume server, filer and S3 gateway. It acknowledges an object before it is on disk; its flushes,
if any, are counted for each system. Keys are generated for each series and passed through the environment. Only the
gateway requires them; the components behind it, which listen on loopback as well, do not.
"""

from __future__ import annotations

import json
import secrets
import socket
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from signal import Signals
from typing import TYPE_CHECKING, Any, ClassVar

from tidemark.services.base import Service
from tidemark.services.http import fetch
from tidemark.services.programs.process import Child, free_ports, is_free, wait_until
from tidemark.services.programs.tools import tool_program
from tidemark.services.proxies import Reachable

if TYPE_CHECKING:
    from pyarrow.fs import S3FileSystem

TOOL = "seaweedfs"
REGION = "us-east-1"  # clients must name a region; the server has none
PARTS = ("master", "volume", "filer", "s3")
# Its components communicate through these sockets, whose folder is not configurable and which a kill leaves behind.
SOCKETS = Path("/tmp")
SOCKET = "seaweedfs-*-grpc-*.sock"
VOLUME_MB = 1024
MOST_VOLUMES = 64  # a bucket takes seven with its first object


@dataclass(frozen=True, slots=True)
class Bucket:
    """A bucket and the client settings for it: `endpoint` is http://host:port, without a trailing slash."""

    name: str
    endpoint: str
    access_key: str = field(repr=False)
    secret_key: str = field(repr=False)

    def file_system(self) -> S3FileSystem:
        """Return an S3 client for the store."""
        from pyarrow.fs import S3FileSystem

        return S3FileSystem(
            access_key=self.access_key,
            secret_key=self.secret_key,
            endpoint_override=self.endpoint,
            region=REGION,
            allow_bucket_creation=True,
        )

    def by_way_of(self, proxy: Reachable | None) -> Bucket:
        """Return the same bucket with its server reached through `proxy`, if there is one."""
        if proxy is None:
            return self
        host, port = proxy.host_and_port()
        return replace(self, endpoint=f"http://{host}:{port}")

    def stored(self) -> tuple[int, int]:
        """Return the number of objects in the bucket and their bytes."""
        from pyarrow.fs import FileSelector, FileType

        found = self.file_system().get_file_info(FileSelector(self.name, recursive=True))
        sizes = [each.size for each in found if each.type is FileType.File]
        return len(sizes), sum(sizes)


class SeaweedFS(Service):
    """The S3 server of `envs/tools/seaweedfs.lock`."""

    name: ClassVar[str] = "seaweedfs"
    title: ClassVar[str] = "SeaweedFS"
    tools: ClassVar[tuple[str, ...]] = (TOOL,)
    has_one_port: ClassVar[bool] = True
    # On SIGTERM it waits 15 s for a stream that it holds itself. All answered requests are written by then.
    stop_signal: ClassVar[Signals] = Signals.SIGKILL
    port_taken: ClassVar[tuple[str, ...]] = ("address already in use",)
    ready_line: ClassVar[str] = "Start Seaweed S3 API Server"
    _program = Path()
    _keys = ("", "")
    _ports: Sequence[int] = ()
    _master_port = 0
    _sockets: tuple[Path, ...] = ()

    def make_bucket(self, name: str) -> Bucket:
        """Return the bucket `name`, created unless it exists; it is deleted with the server's data."""
        bucket = Bucket(name, self.uri, *self._keys)
        bucket.file_system().create_dir(name)
        return bucket

    def version(self) -> str:
        return str(self._status()["Version"])

    def _program_files(self) -> tuple[Path, ...]:
        return (self._program,)

    def _provision(self) -> None:
        self._program = tool_program(TOOL, "weed", self.workspace)

    def _prepare(self) -> None:
        super()._prepare()
        self._keys = (secrets.token_hex(10), secrets.token_hex(20))

    def _launch(self) -> Child:
        remove_sockets(SOCKETS)
        # Reuse the previous ports if they are free: servers that store files here know that address.
        before = self._ports
        self._ports = ports = before if before and all(map(is_free, before)) else free_ports(2 * len(PARTS))
        taken = dict(zip(PARTS, zip(ports[::2], ports[1::2], strict=True), strict=True))
        self._master_port, self._port = taken["master"][0], taken["s3"][0]
        self._sockets = tuple(SOCKETS / f"seaweedfs-{part}-grpc-{taken[part][1]}.sock" for part in PARTS)
        options = {
            "ip": "127.0.0.1",
            "ip.bind": "127.0.0.1",
            # The working directory, because a path with a comma would be split into two.
            "dir": ".",
            **{f"{part}.port": str(http) for part, (http, _) in taken.items()},
            **{f"{part}.port.grpc": str(grpc) for part, (_, grpc) in taken.items()},
            "filer": "true",
            "s3": "true",
            # Otherwise it would send usage data to its developers.
            "master.telemetry": "false",
            "master.volumeSizeLimitMB": str(VOLUME_MB),
            "volume.max": str(MOST_VOLUMES),
            # Also in the working directory: a socket's path is limited to 107 bytes.
            "filer.localSocket": "filer.sock",
            "s3.localSocket": "s3.sock",
            # Additional servers that are not used.
            "s3.port.iceberg": "0",
            "s3.port.lance": "0",
            "s3.iam": "false",
        }
        access_key, secret_key = self._keys
        command: list[str | Path] = [self._program, "-logtostderr=true", "server"]
        command += [f"-{key}={value}" for key, value in options.items()]
        keys = {"AWS_ACCESS_KEY_ID": access_key, "AWS_SECRET_ACCESS_KEY": secret_key}
        environment = {**keys, "HOME": str(self.data_directory)}
        return self._begin(self.title, command, self.log_path, environment, self.data_directory)

    def _wait_until_ready(self, child: Child, log_start: int) -> None:
        super()._wait_until_ready(child, log_start)
        wait_until(child, self._has_room, self.ready_s, "had no volume server")

    def _has_room(self) -> bool:
        """Return True if its volume server has registered with the master; until then objects are refused."""
        return bool(self._status()["Topology"]["Max"] > 0)

    def _status(self) -> dict[str, Any]:
        """Return the status of its master."""
        return dict(json.loads(fetch(f"http://127.0.0.1:{self._master_port}/dir/status", 10)))

    def _end(self, how: Signals) -> None:
        super()._end(how)
        for path in self._sockets:
            path.unlink(missing_ok=True)


class InBucket:
    """Mixin for a catalog whose metadata files are in a separate bucket of `store`, reached through `way`."""

    store: SeaweedFS
    way: Reachable | None = None

    @cached_property
    def _bucket_name(self) -> str:
        return f"tidemark-{secrets.token_hex(6)}"

    @property
    def bucket(self) -> Bucket:
        """Bucket, created if necessary; its address is the store's, which changes with each start."""
        return self.store.make_bucket(self._bucket_name)


def remove_sockets(folder: Path) -> None:
    """Remove sockets that killed SeaweedFS servers left in `folder`, on which no process listens."""
    for path in folder.glob(SOCKET):
        with suppress(OSError), socket.socket(socket.AF_UNIX) as client:
            try:
                client.connect(str(path))
            except ConnectionRefusedError:
                path.unlink(missing_ok=True)
