"""Counting of single commits: servers of one system, a client in another process, and counters before and after.

The client is the system's own, or a pipeline, on a new table in each run. Statements are counted by PostgreSQL, round
trips and requests by a proxy before each server that the client or a catalog's server talks to, system calls by strace,
and files by listing them.
"""

from __future__ import annotations

import shutil
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import replace
from pathlib import Path, PurePath
from typing import Any, Self

from tidemark.config import ServicesConfig
from tidemark.errors import ConfigError, OracleError
from tidemark.machine import strace
from tidemark.measure.anatomy.writers import Client, Files, Pipeline, client, pipeline
from tidemark.paths import Workspace, private_directory
from tidemark.runs.anatomy import CLIENT, IN_SERIES, SERVER, Anatomy, Counted, Source, Step, duration_ms, merged
from tidemark.services.base import Service
from tidemark.services.http import keep_loopback_direct
from tidemark.services.iceberg.rest import RestCatalog
from tidemark.services.kafka import Kafka
from tidemark.services.postgres import Postgres
from tidemark.services.proxies import CountingProxy, Exchange, Place, in_series, is_during
from tidemark.services.seaweedfs import InBucket
from tidemark.services.servers import Servers, in_order, prepared, tools_of
from tidemark.software.tools import packages, provide_tool
from tidemark.systems.base import Context, Variant, take
from tidemark.systems.sinks import StreamingSink

PATH_LENGTH = 180  # of a run's folder, everywhere the same: tables have their own paths in files, and in requests
AT_ONCE = 10  # commits between two reports of progress
# Kinds of the files of a table, by a folder's name and by the end of a file's.
KINDS = {"_delta_log": "log", ".hoodie": "log", "_transactions": "log", "_versions": "manifest", "snapshot": "metadata"}
ENDINGS = {
    ".crc": "checksum",
    ".metadata.json": "metadata",
    ".parquet": "data",
    ".orc": "data",
    ".lance": "data",
    ".json": "metadata",
}

type Report = Callable[[int, int], None]  # commits that are done, and all
type Way = tuple[str, str]  # who asks, and the title of the server


def take_apart(
    variant: Variant,
    options: Mapping[str, Any],
    workspace: Workspace,
    stack: str,
    commits: Sequence[int],
    rows: int,
    runs: int,
    report: Report = lambda _done, _all: None,
    columns: int = 21,
) -> Anatomy:
    """Return the counts of the chosen `commits` (numbers from 1), each of `rows` rows, over `runs` tables.

    `options` are those that the user gave, which `variant` has with all others. Raise ConfigError if the system cannot
    run here, and OracleError if a table does not hold afterwards what was written.
    """
    if (reason := variant.system.unavailable(variant.options)) is not None:
        raise ConfigError(f"{variant.name}: {reason}")
    keep_loopback_direct()
    system, needs, engines = variant.system, variant.needs, list[type[Service]]()
    if issubclass(system, StreamingSink):
        variant = replace(variant, options=system.for_single_events(variant.options))
        needs = (*variant.needs, Kafka)
        engines.append(system.engine(variant.options))
    kinds, chosen = in_order(needs), sorted({*commits})
    found: list[dict[int, Counted]] = []
    sequences: list[tuple[Step, ...]] = []
    for name in {*variant.system.tools, *tools_of(kinds)}:
        provide_tool(name, workspace)
    take(packages(variant.system.tools, workspace).values())
    work = workspace.work / "anatomy"
    shutil.rmtree(work, ignore_errors=True)
    private_directory(work)
    with ExitStack() as stacked:
        stacked.callback(shutil.rmtree, work, ignore_errors=True)
        servers = stacked.enter_context(prepared(kinds, workspace, work, ServicesConfig()))
        if (postgres := servers.find(Postgres)) is not None:
            postgres.count_statements()
        between = _between(servers, stacked)
        servers.start()
        for number in range(runs):
            for kind in engines if number else ():
                servers.by_class[kind].restart()  # a new process for each table, as a client is
            name = f"run-{number + 1}".ljust(PATH_LENGTH - len(str(work.absolute())) - 1, "-")
            with Run(variant, servers, between, workspace, private_directory(work / name), (rows, columns)) as run:
                found.append(run.counts(chosen, number * chosen[-1], runs * chosen[-1], report))
                sequences.append(run.steps)
        return Anatomy(
            system=variant.name,
            title=variant.title,
            stack=stack,
            versions=dict(run.writer.versions),
            options=dict(options),
            rows=rows,
            columns=columns,
            runs=runs,
            commits={number: merged([each[number] for each in found]) for number in chosen},
            not_counted=run.not_counted(),
            steps=min(sequences, key=duration_ms),
            pipeline=dict(run.writer.settings),
        )


def _between(servers: Servers, stack: ExitStack) -> dict[Way, CountingProxy]:
    """Put proxies between a catalog's server and its database and object store; they are asked for at its start."""
    found: dict[Way, CountingProxy] = {}

    def through(service: Service) -> Place:
        proxy = found[SERVER, service.title] = stack.enter_context(CountingProxy(service))
        return Place(proxy.port)

    for service in servers.by_class.values():
        if isinstance(service, RestCatalog) and service.database is not None:
            service.line = through(service.database[0])
        if isinstance(service, InBucket):
            service.way = through(service.store)
    return found


class Run:
    """One table of the system and its writer, the client or the pipeline; the context starts the writer, and ends it.

    `between` are the proxies behind a catalog's server; `size` is the number of rows of a commit, and of columns.
    """

    def __init__(
        self,
        variant: Variant,
        servers: Servers,
        between: Mapping[Way, CountingProxy],
        workspace: Workspace,
        folder: Path,
        size: tuple[int, int],
    ) -> None:
        self.steps: tuple[Step, ...] = ()  # of one commit after the last one that is counted
        self._variant, self._servers, self._folder, self._size = variant, servers, folder, size
        self._table = private_directory(folder / "table").resolve()
        self._tools = packages(variant.system.tools, workspace)
        self._postgres = servers.find(Postgres)
        self._stack = ExitStack()
        self._proxies = dict(between)

    def __enter__(self) -> Self:
        rows, columns = self._size
        with ExitStack() as stack:
            variant, folder = self._variant, self._folder
            context = Context(self._table, self._services(stack), rows_per_write=rows, tools=self._tools)
            if issubclass(variant.system, StreamingSink):
                asked = self._asked if CLIENT in self._askers() else None
                own = pipeline(variant, context, self._servers.by_class, columns, folder, asked)
                self.writer: Client | Pipeline = stack.enter_context(own)
            else:
                self.writer = stack.enter_context(client(variant, context, columns, folder))
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def _services(self, stack: ExitStack) -> dict[type[Service], Service]:
        """Return the servers as the client reaches them: those that it connects to itself through a proxy."""
        services = dict(self._servers.by_class)
        for kind in self._variant.needs:
            if (port := self._proxied(services[kind], stack)) is None:
                continue
            services[kind] = near = services[kind].by_way_of(port)
            if isinstance(near, InBucket):
                store = self._proxied(near.store, stack)
                near.way = None if store is None else Place(store)
        return services

    def _proxied(self, service: Service, stack: ExitStack) -> int | None:
        """Return the port of the server's proxy; None if clients connect to other ports than its own."""
        try:
            service.host_and_port()
        except NotImplementedError:
            return None
        way = CLIENT, service.title
        if way not in self._proxies:
            self._proxies[way] = stack.enter_context(CountingProxy(service))
        return self._proxies[way].port

    def counts(self, chosen: Sequence[int], before: int, whole: int, report: Report) -> dict[int, Counted]:
        """Return the counts of each of the `chosen` commits (in order), and check the table after the last one.

        `report` is called with the commits that are done, which begin with `before`, and with `whole`.
        """
        found: dict[int, Counted] = {}
        done = 0
        for number in chosen:
            while done < number - 1:
                count = min(AT_ONCE, number - 1 - done)
                self._take_exchanges()
                self.writer.write(count)
                done += count
                report(before + done, whole)
            found[number] = self._counted()
            done = number
            report(before + done, whole)
        self._take_exchanges()
        untraced = []  # tracing takes time, and so does what the machine does beside
        for _ in range(self.writer.spare):
            self.writer.write(1)
            untraced.append(steps(self._take_exchanges()))
        done, self.steps = done + self.writer.spare, min(untraced, key=duration_ms)
        if wrong := self.writer.wrong():
            raise OracleError(f"{self._variant.name}: the table does not hold what its {done:,} commits wrote: {wrong}")
        return found

    def not_counted(self) -> dict[str, str]:
        """Return the reason for each source that nothing is counted of."""
        reasons = {
            Source.CALLS: strace.why_not(),
            Source.SQL: None if self._postgres is not None else "no PostgreSQL is part of it",
            Source.NETWORK: None,
            Source.SERVERS: None if SERVER in self._askers() else "no catalog's server asks another server",
        }
        if CLIENT not in self._askers():
            asked = [kind for kind in self._variant.needs if kind not in self.writer.apart]
            titles = [self._servers.by_class[kind].title for kind in asked]
            others = f"{' and '.join(titles)} has other ports for its clients than its own, and no proxy before these"
            reasons[Source.NETWORK] = others if titles else "its client talks to no server"
        found = {str(source): reason for source, reason in reasons.items() if reason is not None}
        return {**found, **{str(name): reason for name, reason in self.writer.not_counted.items()}}

    def _askers(self) -> set[str]:
        return {who for who, _ in self._proxies}

    def _asked(self) -> list[Exchange]:
        """Return the writer's exchanges since the last count, with those that are not answered yet."""
        return [each for (who, _), proxy in self._proxies.items() if who == CLIENT for each in proxy.noted()]

    def _counted(self) -> Counted:
        """Make one commit and return its counts."""
        before, logged, statements, sql = self.writer.files(), 0, 0, {}
        with self._tracing() as recorded:
            # What a pipeline does by its clock while strace attaches and detaches belongs to no commit.
            if self._postgres is not None:
                logged, statements = self._postgres.log_path.stat().st_size, self._postgres.statements()
            self._take_exchanges()
            began_s = time.time()
            peak = self.writer.write(1)
            ended_s = time.time()
            exchanges = self._take_exchanges()
            if self._postgres is not None:
                sql["SQL statements"] = self._postgres.statements() - statements
                sql["SQL transactions"] = self._postgres.transactions(logged)
        files, sizes = written(before, self.writer.files())
        in_turn = {} if IN_SERIES in self.writer.not_counted else waits(exchanges)
        return {
            Source.FILES: files,
            Source.BYTES: sizes,
            Source.CALLS: self._operations(recorded, began_s, ended_s),
            Source.SQL: sql,
            Source.NETWORK: {**exchanged(exchanges, CLIENT), **in_turn},
            Source.SERVERS: exchanged(exchanges, SERVER),
            Source.MEMORY: {} if peak is None else {"peak MB of the client": round(peak / 1e6)},
        }

    def _take_exchanges(self) -> dict[Way, list[Exchange]]:
        """Return the exchanges since the last call."""
        return {way: proxy.take() for way, proxy in self._proxies.items()}

    def _tracing(self) -> AbstractContextManager[Mapping[str, Path]]:
        """Return a context in which the writer and the servers are traced, with the file of each, if strace can."""
        if strace.why_not() is not None:
            return nullcontext({})
        others = [each for kind, each in self._servers.by_class.items() if kind not in self.writer.apart]
        groups = {CLIENT: self.writer.pids(), **{service.title: service.pids() for service in others}}
        return strace.tracing(groups, self._folder)

    def _operations(self, recorded: Mapping[str, Path], began_s: float, ended_s: float) -> dict[str, int]:
        """Return the calls between two moments of time.time, by what they did and whose they are."""
        found: dict[str, int] = {}
        for title, path in recorded.items():
            lines = strace.between(path.read_text(errors="replace").splitlines(), began_s, ended_s)
            calls = strace.completed(lines)
            operations = strace.operations(calls, self._table, serving_only=title == Postgres.title)
            found |= {f"{what} by {title}": count for what, count in sorted(operations.items())}
        return found


def written(before: Files, after: Files) -> tuple[dict[str, int], dict[str, int]]:
    """Return the number of files that are new, changed or gone, by kind, and the bytes written to them.

    The bytes of a file that was changed in place are those by which it grew: what was overwritten is not seen.
    """
    files, sizes = Counter[str](), Counter[str]()
    for path, about in after.items():
        if (old := before.get(path)) == about:
            continue
        kind, (size, _, inode) = kind_of(PurePath(path)), about
        files[f"{kind} files"] += 1
        before_it = old[0] if old is not None and old[2] == inode != 0 else 0
        sizes[f"bytes of {kind} files"] += max(0, size - before_it)
    files["removed files"] = len(before.keys() - after.keys())
    return dict(+files), dict(sizes)


def steps(exchanges: Mapping[Way, Sequence[Exchange]]) -> tuple[Step, ...]:
    """Return all exchanges of one commit in order of time."""
    whole = sorted(((each, way) for way, some in exchanges.items() for each in some), key=lambda pair: pair[0].began_s)
    found = []
    for each, (who, title) in whole:
        times_s = each.began_s - whole[0][0].began_s, each.ended_s - each.began_s
        began_ms, took_ms = (round(1000 * time_s, 2) for time_s in times_s)
        found.append(Step(title, each.asked, began_ms, took_ms, each.sent_bytes, each.received_bytes, who))
    return tuple(found)


def exchanged(exchanges: Mapping[Way, Sequence[Exchange]], asker: str) -> dict[str, int]:
    """Return round trips, HTTP requests by method, connections and bytes of `asker` with each server, by its title."""
    found, by = Counter[str](), "" if asker == CLIENT else f" by {asker}"
    for (who, title), with_one in exchanges.items():
        for each in with_one if who == asker else ():
            found[f"round trips to {title}{by}"] += 1
            found[f"bytes to {title}{by}"] += each.sent_bytes
            found[f"bytes from {title}{by}"] += each.received_bytes
            found[f"connections to {title}{by}"] += each.opens
            if each.method is not None:
                found[f"{each.method} requests to {title}{by}"] += 1
    return dict(sorted((+found).items()))


def waits(exchanges: Mapping[Way, Sequence[Exchange]]) -> dict[str, int]:
    """Return the round trips in series that the client waits for: of all, and those to each of several servers.

    Those of a catalog's server are among them that it makes while the client waits for its answer.
    """
    asked = [each for (who, _), some in exchanges.items() for each in some if who == CLIENT]
    if not asked:
        return {}
    behind: list[Exchange] = []
    to_server: dict[str, list[Exchange]] = {}
    for (who, title), some in exchanges.items():
        waited = [one for one in some if who == CLIENT or any(is_during(one, each) for each in asked)]
        behind += waited if who != CLIENT else []
        to_server[title] = to_server.get(title, []) + waited
    each_one = {f"{IN_SERIES} to {title}": in_series(some) for title, some in sorted(to_server.items()) if some}
    return {IN_SERIES: in_series(asked, behind), **(each_one if len(to_server) > 1 else {})}


def kind_of(path: PurePath) -> str:
    """Return the kind of a table's file by its name and folder: data, log, checkpoint, manifest, manifest list, ..."""
    name = path.name
    if "catalog." in name:
        return "catalog"
    if "checkpoint" in name and not name.endswith(".crc"):
        return "checkpoint"
    if "manifest-list" in name or (name.startswith("snap-") and name.endswith(".avro")):
        return "manifest list"
    if name.endswith(".avro") or name.startswith("manifest-"):
        return "manifest"
    by_folder = (kind for part, kind in KINDS.items() if part in path.parts[:-1])
    by_ending = (kind for ending, kind in ENDINGS.items() if name.endswith(ending))
    return next(by_folder, None) or next(by_ending, "other")
