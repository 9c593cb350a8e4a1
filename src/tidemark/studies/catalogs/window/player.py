"""Program that plays an order of requests with Locust, and records when each began and how it ended.

    python player.py ORDER RESULT

It runs in the environment of `envs/tools/locust.lock`, which does not contain this package. ORDER is JSON, as
`generator` writes it. Users are Locust's: each is a greenlet with one persistent connection. They wait at a barrier
before each phase. The program reports its progress and waits for commands, one line each:

    writes "ready", reads "go 0", writes "done 0 <nanoseconds>", reads "go 1", ..., writes "written"

Times are those of the kernel's monotonic clock, which all processes share.
"""

from __future__ import annotations

import itertools
import json
import os
import sys
import time
from array import array
from operator import length_hint
from typing import Any

from gevent import sleep
from gevent.event import Event
from locust import FastHttpUser, task
from locust.env import Environment
from locust.exception import StopUser

BROKEN = 0  # status of a request without any answer
ZEROS = ("start_ns", "elapsed_ns", "late_ns", "status", "user", "doubled")
MOST_KEPT = 10  # answers that are kept as text
APPENDS = ("APPEND", "TRANSACTION")  # kinds of request that consist of several requests
CONFLICT = 409  # status of a commit that came too late
SECOND_NS, LOOK_S = 1_000_000_000, 0.05
FAILING = 500  # and above: the server failed
NO_SNAPSHOT = -1  # id by which some servers denote that there is none


class Play:
    """Order and the result of each request."""

    def __init__(self, order: dict[str, Any]) -> None:
        self.order = order
        self.phases: list[dict[str, Any]] = order["phases"]
        self.first = [0, *itertools.accumulate(len(phase["requests"]) for phase in self.phases)]
        self.columns = {name: array("q", bytes(8 * self.first[-1])) for name in ZEROS}
        self.columns["attempts"] = array("q", [1]) * self.first[-1]
        self.gates = [Event() for _ in self.phases]
        self.ended = [Event() for _ in self.phases]
        self.began_ns = [0 for _ in self.phases]
        self.queues = [iter(range(len(phase["requests"]))) for phase in self.phases]
        self.busy = [min(phase["users"], len(phase["requests"])) for phase in self.phases]
        self.waiting = 0
        self.all_here = Event()
        self.users = max(self.busy)
        self.said: list[str] = []

    def take_part(self, client: Any, user: int) -> None:
        """Run one user through all phases."""
        self.waiting += 1
        if self.waiting == self.users:
            self.all_here.set()
        for number in range(len(self.phases)):
            self.gates[number].wait()
            if user < min(self.phases[number]["users"], len(self.phases[number]["requests"])):
                self._work(client, user, number)
                self.busy[number] -= 1
                if not self.busy[number]:
                    self.ended[number].set()

    def _work(self, client: Any, user: int, number: int) -> None:
        phase, columns, kinds = self.phases[number], self.columns, self.order["kinds"]
        requests, due = phase["requests"], phase["due_s"]
        queue = iter(range(user, len(requests), phase["users"])) if phase["own"] else self.queues[number]
        began, first = self.began_ns[number], self.first[number]
        mark, clock = self.order["fill"], time.perf_counter_ns
        retries = self.order["most_retries"] if phase["ramp"] else 0
        while phase["ramp"] and length_hint(queue) and (left := began + user * SECOND_NS - clock()) > 0:
            sleep(min(left / SECOND_NS, LOOK_S))
        for place in queue:
            kind, path, fill = requests[place]
            name, method, body = kinds[kind]
            data = body.replace(mark, fill).encode() if body else None
            row, late = first + place, 0
            if due is not None:
                at = began + int(due[place] * 1e9)
                if (left := at - clock()) > 0:
                    sleep(left / 1e9)
                late = clock() - at
            start = clock()
            if method in APPENDS:
                answer, columns["attempts"][row] = self._append(client, name, path, json.loads(body), json.loads(fill))
            else:
                answer = client.request(method, path, name=name, data=data, headers=self.order["headers"])
                while answer.status_code == FAILING and columns["attempts"][row] <= retries:
                    columns["attempts"][row] += 1
                    answer = client.request(method, path, name=name, data=data, headers=self.order["headers"])
            columns["elapsed_ns"][row] = clock() - start
            columns["start_ns"][row], columns["late_ns"][row] = start, late
            status = answer.status_code or BROKEN
            columns["status"][row], columns["user"][row] = status, user
            if not 200 <= status < 300 and len(self.said) < MOST_KEPT:
                self.said.append(f"{name}: {answer.status_code} {(answer.text or str(answer.error) or '')[:300]}")
            elif phase["own"] and name == self.order["listing"]:
                columns["doubled"][row] = doubled(json.loads(answer.text))
            if (status == BROKEN or status >= FAILING) and os.path.exists(self.order["stopping"]):  # noqa: PTH110
                break

    def _append(self, client: Any, name: str, path: str, body: dict[str, Any], fill: Any) -> tuple[Any, int]:
        """Read the table and commit on top of it, again if another commit was faster; return answer and attempts."""
        headers, attempts = self.order["headers"], 0
        snapshot, place, sent = fill, path, body
        if isinstance(fill, dict):  # a transaction: the snapshot's id is next to the table's identifier
            snapshot, place = fill["snapshot"], f"{path.partition('/namespaces/')[0]}/transactions/commit"
            sent = {"table-changes": [body]}
            body["identifier"] = fill["identifier"]
        while True:
            attempts += 1
            answer = client.request("GET", path, name=f"{name}: read", headers=headers)
            if not 200 <= (answer.status_code or BROKEN) < 300:
                return answer, attempts
            seen = json.loads(answer.text).get("metadata", {})
            before = seen.get("current-snapshot-id")
            body["requirements"][0]["snapshot-id"] = None if before == NO_SNAPSHOT else before
            added = body["updates"][0]["snapshot"]
            added["snapshot-id"] = body["updates"][1]["snapshot-id"] = snapshot
            added["sequence-number"] = seen.get("last-sequence-number", 0) + 1
            added["timestamp-ms"] = int(time.time() * 1000)
            if before not in (None, NO_SNAPSHOT):
                added["parent-snapshot-id"] = before
            answer = client.request("POST", place, name=name, data=json.dumps(sent).encode(), headers=headers)
            if answer.status_code != CONFLICT or attempts == self.order["most_attempts"]:
                return answer, attempts


def doubled(listing: dict[str, Any]) -> int:
    """Return the number of repeated names in a listing of tables."""
    names = [each["name"] for each in listing.get("identifiers", [])]
    return len(names) - len(set(names))


def play(order: dict[str, Any]) -> Play:
    """Play all phases, each on its command; exit on any other input."""
    whole = Play(order)
    numbers = itertools.count()

    class Caller(FastHttpUser):  # type: ignore[misc]
        network_timeout = connection_timeout = order["timeout_s"]
        max_retries = 1
        max_redirects = 0

        @task  # type: ignore[untyped-decorator]
        def take_part(self) -> None:
            whole.take_part(self.client, next(numbers))
            raise StopUser

    environment = Environment(user_classes=[Caller], host=order["base"])
    runner = environment.create_local_runner()
    runner.start(whole.users, spawn_rate=whole.users)
    whole.all_here.wait()
    print("ready", flush=True)
    for number, gate in enumerate(whole.gates):
        if sys.stdin.readline().split() != ["go", str(number)]:
            sys.exit("received something other than the next 'go'")
        whole.began_ns[number] = time.perf_counter_ns()
        gate.set()
        whole.ended[number].wait()
        print("done", number, time.perf_counter_ns() - whole.began_ns[number], flush=True)
    runner.quit()
    return whole


def main() -> None:
    with open(sys.argv[1]) as file:  # noqa: PTH123
        order = json.load(file)
    played = play(order)
    columns = {name: values.tolist() for name, values in played.columns.items()}
    with open(sys.argv[2], "w") as file:  # noqa: PTH123
        json.dump({"columns": columns, "began_ns": played.began_ns, "said": played.said}, file)
    print("written", flush=True)


if __name__ == "__main__":
    main()
