"""A small Debian with Tidemark in it, run under QEMU: a machine that can be restarted."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from ..sandbox import Sandbox

PROGRAMS = ("debootstrap", "qemu-system-x86_64", "mkfs.ext4", "debugfs")
SUITE = "bookworm"
# The kernel, systemd, and the libraries that Python's own modules are linked with.
PACKAGES = (
    "systemd", "systemd-sysv", "dbus", "linux-image-cloud-amd64", "procps", "libssl3", "libffi8", "libsqlite3-0",
    "libbz2-1.0", "liblzma5", "zlib1g", "libreadline8", "libncursesw6", "libuuid1", "libstdc++6",
)  # fmt: skip
IMAGE_BYTES = 12 << 30  # sparse
WORKSPACE = Path("/srv/workspace")  # below /tmp it would be removed at the first boot
MACHINE_ID = "5ca1ab1e5ca1ab1e5ca1ab1e5ca1ab1e"
HOSTS = "127.0.0.1 localhost tidemark\n"


def missing() -> str | None:
    """Return why no machine can be made here, or None if one can."""
    absent = [name for name in PROGRAMS if shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin:/sbin") is None]
    if absent:
        return f"not on PATH: {', '.join(absent)}"
    return None if os.geteuid() == 0 else "debootstrap needs root"


def run(*command: str | Path) -> None:
    path = f"{os.environ['PATH']}:/usr/sbin:/sbin"
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, "PATH": path})
    assert done.returncode == 0, f"{command}:\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"


def debian(cache: Path) -> Path:
    """Return the folder with a fresh Debian, which is made only once."""
    folder = cache / "qemu" / SUITE
    if not folder.exists():
        incoming = folder.with_name(f".{SUITE}.incoming")
        shutil.rmtree(incoming, ignore_errors=True)
        incoming.mkdir(parents=True, mode=0o755)
        run("debootstrap", "--variant=minbase", f"--include={','.join(PACKAGES)}", SUITE, incoming)
        incoming.rename(folder)
    return folder


class Machine:
    """Image made from `sandbox`'s files, which runs `script` at each boot and sends its output to the console."""

    def __init__(self, folder: Path, sandbox: Sandbox, script: str) -> None:
        self.folder, self.sandbox = folder, sandbox
        self.image, self.console = folder / "image", folder / "console.log"
        tree = folder / "tree"
        run("cp", "-a", debian(sandbox.cache), tree)
        run("cp", "-a", sandbox.root, tree / WORKSPACE.relative_to("/"))
        for source in (Path(sys.prefix), Path(sys.base_prefix)):
            place = tree / source.resolve().relative_to("/")
            if not place.exists():
                place.parent.mkdir(parents=True, exist_ok=True)
                run("cp", "-a", source.resolve(), place)
        # At the same path: archives of loaded classes name the path of the jars, and save most of Kafka's start.
        for name in ("jars", "postgres", "classes", "kafka-storage", "class-data"):
            if (sandbox.cache / name).exists():
                place = tree / (sandbox.cache / name).relative_to("/")
                place.parent.mkdir(parents=True, exist_ok=True)
                run("cp", "-a", sandbox.cache / name, place)
        (tree / "etc/fstab").write_text("/dev/vda / ext4 rw,noatime 0 1\n")
        (tree / "etc/hostname").write_text("tidemark\n")
        (tree / "etc/hosts").write_text(HOSTS)
        (tree / "etc/machine-id").write_text(MACHINE_ID + "\n")
        (tree / "boot-script").write_text(script)
        (tree / "boot-script").chmod(0o755)
        # Python may lie below /tmp here, which systemd empties at each boot.
        (tree / "etc/tmpfiles.d/tmp.conf").symlink_to("/dev/null")
        units = tree / "etc/systemd/system"
        (units / "at-boot.service").write_text(
            "[Unit]\nAfter=multi-user.target\n[Service]\nType=exec\nExecStart=/bin/bash /boot-script\n"
            "StandardOutput=tty\nStandardError=tty\nTTYPath=/dev/ttyS0\n[Install]\nWantedBy=multi-user.target\n"
        )
        # It would take over the console to which the script prints.
        (units / "serial-getty@ttyS0.service").symlink_to("/dev/null")
        (units / "multi-user.target.wants").mkdir(exist_ok=True)
        (units / "multi-user.target.wants/at-boot.service").symlink_to("/etc/systemd/system/at-boot.service")
        self.kernel = next((tree / "boot").glob("vmlinuz-*")).rename(folder / "kernel")
        self.initrd = next((tree / "boot").glob("initrd.img-*")).rename(folder / "initrd")
        with self.image.open("wb") as file:
            file.truncate(IMAGE_BYTES)
        run("mkfs.ext4", "-q", "-F", "-d", tree, self.image)
        shutil.rmtree(tree)

    def run(self, timeout_s: float) -> str:
        """Switch the machine on and wait until it switches itself off; return the console output of all boots."""
        # Software emulation works everywhere; TIDEMARK_QEMU may select something faster.
        processor = os.environ.get("TIDEMARK_QEMU", "-accel tcg,thread=multi -cpu max")
        command = ["qemu-system-x86_64", *processor.split()]
        command += ["-smp", "2", "-m", "4096", "-display", "none", "-monitor", "none", "-nic", "none"]
        command += ["-drive", f"file={self.image},if=virtio,format=raw,cache=unsafe"]
        command += ["-kernel", str(self.kernel), "-initrd", str(self.initrd)]
        command += ["-append", "root=/dev/vda rw console=ttyS0 panic=-1 quiet"]
        command += ["-serial", f"file:{self.console}"]
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=timeout_s)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"still on after {timeout_s:.0f} s:\n{self.said()[-5000:]}") from None
        assert done.returncode == 0, f"{done.stderr}\n{self.said()[-3000:]}"
        return self.said()

    def said(self) -> str:
        return self.console.read_text(errors="replace") if self.console.exists() else ""

    def take_out(self, path: Path, target: Path) -> None:
        """Copy the folder `path` of the switched-off machine into `target`."""
        target.mkdir(parents=True, exist_ok=True)
        run("debugfs", "-R", f"rdump {path} {target}", self.image)

    def holds(self, path: str) -> bool:
        """Return True if the switched-off machine has a file `path`."""
        path_variable = f"{os.environ['PATH']}:/usr/sbin:/sbin"
        asked = subprocess.run(
            ["debugfs", "-R", f"stat {path}", self.image],
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "PATH": path_variable},
        )
        return "Inode:" in asked.stdout
