"""System calls of running programs, recorded by strace: it attaches to processes, and leaves none of them stopped."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tidemark.errors import MachineError

# Each of these returns once its target is on the disk.
SYNCS = ("fsync", "fdatasync", "sync", "syncfs", "sync_file_range", "msync")
OPENS = ("open", "openat", "creat")
SYNCHRONOUS = re.compile(r"\b(O_DSYNC|O_SYNC|RWF_DSYNC|RWF_SYNC)\b")
# Only those of PostgreSQL's processes that serve a client make this call; others sync at times of their own.
READS = "recvfrom"
# What a call does to files, as tables have it; opens and listings are told by their arguments and results.
DOES = {
    **dict.fromkeys(("rename", "renameat", "renameat2"), "rename"),
    **dict.fromkeys(("link", "linkat", "symlink", "symlinkat"), "link"),
    **dict.fromkeys(("unlink", "unlinkat", "rmdir"), "remove"),
    **dict.fromkeys(("mkdir", "mkdirat"), "make folder"),
}
LISTS = "getdents64"
WRITES = ("write", "pwrite64", "writev", "pwritev", "pwritev2")
CALLS = (*SYNCS, *OPENS, *DOES, LISTS, *WRITES, "execve", READS)
ATTACH_SECONDS = 20.0
CALL = re.compile(r"(?P<pid>\d+) +\S+ (?P<name>\w+)\((?P<text>.*) += (?P<result>\S+)")
AT = re.compile(r"\d+ +([\d.]+) ")
BEGUN, RESUMED = " <unfinished ...>", re.compile(r"(?P<pid>\d+) +\S+ <\.\.\. \w+ resumed>(?P<rest>.*)$")
PATH = re.compile(r"[<\"](/[^>\"]*)")
HERE = re.compile(r"AT_FDCWD<[^>]*>")


@dataclass(frozen=True, slots=True)
class Call:
    """One call that succeeded; `text` is its arguments and its result, in which descriptors have their paths."""

    pid: int
    name: str
    text: str
    result: str


def completed(lines: Iterable[str]) -> Iterator[Call]:
    """Yield the calls of a recording that succeeded; one that another thread interrupted is on two lines."""
    begun: dict[str, str] = {}
    for line in lines:
        if line.endswith(BEGUN):
            begun[line.split(maxsplit=1)[0]] = line.removesuffix(BEGUN)
            continue
        if (again := RESUMED.match(line)) is not None:
            line = begun.pop(again["pid"], "") + again["rest"]
        found = CALL.match(line)
        if found is not None and found["result"] not in ("-1", "?"):
            yield Call(int(found["pid"]), found["name"], line[found.start("text") :], found["result"])


def between(lines: Iterable[str], began_s: float, ended_s: float) -> Iterator[str]:
    """Yield the lines of a recording whose calls began, or went on, between two moments of time.time."""
    return (line for line in lines if (at := AT.match(line)) and began_s <= float(at[1]) <= ended_s)


def operations(calls: Iterable[Call], folder: Path, serving_only: bool = False) -> Counter[str]:
    """Count what `calls` did: to files in `folder`, by the names of `DOES`; syncs of any file; and programs started.

    Bytes written are those of calls, without memory that is mapped. With `serving_only`, only processes count that read
    from a client meanwhile.
    """
    found, all_calls = Counter[str](), list(calls)
    serving = {call.pid for call in all_calls if call.name == READS}
    programs = set()
    for call in all_calls:
        if serving_only and call.pid not in serving:
            continue
        if call.name == "execve":
            programs.add(call.pid)  # which may have tried several paths
        elif call.name in SYNCS:
            found[call.name] += call.name != "msync" or "MS_SYNC" in call.text
        elif call.name in OPENS and SYNCHRONOUS.search(call.text) is not None:
            found["open for synchronous writes"] += 1
        elif call.name in WRITES and _is_in(call, folder):
            found["bytes written"] += int(call.result)
        elif (what := _operation(call)) is not None and _is_in(call, folder):
            found[what] += 1
    found["program started"] = len(programs)
    return +found


def _operation(call: Call) -> str | None:
    if call.name in OPENS:
        return "create" if call.name == "creat" or "O_CREAT" in call.text else "open"
    if call.name == LISTS:
        return "list folder" if call.result == "0" else None  # the last of a listing's calls returns nothing
    return DOES.get(call.name)


def _is_in(call: Call, folder: Path) -> bool:
    paths = PATH.findall(HERE.sub("", call.text))
    if call.name in OPENS:
        paths = paths[-1:]  # of the descriptor that it returned
    if call.name in OPENS and "O_DIRECTORY" in call.text:
        return False  # a folder, for a listing or a sync, which count themselves
    return any(Path(path).is_relative_to(folder) for path in paths)


@cache
def why_not() -> str | None:
    """Return why nothing can be traced here, or None if tracing works."""
    if shutil.which("strace") is None:
        return "strace is not installed"
    sleeper = subprocess.Popen(["sleep", "60"], stdin=subprocess.DEVNULL)
    try:
        tracer = _attach([sleeper.pid], ["-e", "trace=execve"])
        traced = _has_attached(tracer, [sleeper.pid])
        said = _let_go(tracer, [sleeper.pid])
    finally:
        sleeper.kill()
        sleeper.wait()
    return None if traced else f"strace may not trace another process here: {said}"


@contextmanager
def tracing(
    groups: Mapping[str, Sequence[int]], directory: Path, calls: Iterable[str] = CALLS
) -> Iterator[dict[str, Path]]:
    """Record `calls` of each group of processes, with threads and children, in a file of `directory` for each group.

    A file is complete when the context ends: strace has then detached from each process, and none is left stopped.
    Raise MachineError if strace cannot attach.
    """
    files = {name: directory / f"{name}.strace" for name in groups}
    traced = ",".join(f"?{call}" for call in calls)
    with ExitStack() as stack:
        for name, pids in groups.items():
            files[name].touch()
            if not pids:
                continue
            options = ["-ttt", "-y", "-s", "8", "-o", str(files[name]), "-e", f"trace={traced}", "-e", "signal=none"]
            tracer = _attach(pids, options)
            if not _has_attached(tracer, pids):
                raise MachineError(f"strace did not attach to {name} {[*pids]}: {_let_go(tracer, pids)}")
            stack.callback(_let_go, tracer, pids)
        yield files


@contextmanager
def killing(pid: int, fatal: Iterable[str], calls: Iterable[str], record: Path) -> Iterator[None]:
    """Kill a process as it begins the first call of `fatal`, which is not made; record its `calls` in a file.

    The file is complete when the context ends, as of `tracing`. Raise MachineError if strace cannot attach.
    """
    traced, ends = (",".join(f"?{call}" for call in some) for some in (calls, fatal))
    options = ["-ttt", "-y", "-s", "8", "-o", str(record), "-e", f"trace={traced}", "-e", f"inject={ends}:signal=KILL"]
    tracer = _attach([pid], options)
    try:
        if not _has_attached(tracer, [pid]):
            raise MachineError(f"strace did not attach to {pid}, to kill it")
        yield
    finally:
        _let_go(tracer, [pid])


def _attach(pids: Sequence[int], options: Sequence[str]) -> subprocess.Popen[str]:
    command = ["strace", "-f", "-q", *options, *(word for pid in pids for word in ("-p", str(pid)))]
    return subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


def _has_attached(tracer: subprocess.Popen[str], pids: Sequence[int]) -> bool:
    """Return True once all threads of `pids` are traced; False if the tracer ends, or takes too long."""
    deadline = time.monotonic() + ATTACH_SECONDS
    while not all(_is_traced(pid) for pid in pids):
        if tracer.poll() is not None or time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return tracer.poll() is None


def _let_go(tracer: subprocess.Popen[str], pids: Sequence[int]) -> str:
    """Stop the tracer and return its last words; none of `pids` is stopped afterwards."""
    tracer.send_signal(signal.SIGINT)
    try:
        _, said = tracer.communicate(timeout=ATTACH_SECONDS)
    except subprocess.TimeoutExpired:
        # The kernel releases all processes that a tracer held when the tracer dies.
        tracer.kill()
        _, said = tracer.communicate()
    for pid in pids:
        if any(_status(task, "State").startswith("T") for task in _tasks(pid)):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)
    return " ".join(said.split())[-300:]


def _tasks(pid: int) -> list[Path]:
    try:
        return list(Path(f"/proc/{pid}/task").iterdir())
    except (FileNotFoundError, ProcessLookupError):
        return []


def _status(task: Path, key: str) -> str:
    try:
        lines = (task / "status").read_text().splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return ""
    return next((line.split(":")[1].strip() for line in lines if line.startswith(f"{key}:")), "")


def _is_traced(pid: int) -> bool:
    return all(_status(task, "TracerPid") not in ("0", "") for task in _tasks(pid))
