"""Messages for the timed loop, as fast as the client hands them out."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from tidemark.errors import StreamError
from tidemark.stream.consumer import check
from tidemark.stream.counters import Counters

STALL_SECONDS = 30.0  # without a single event, although the producer has some: the broker is not well
POLL_SECONDS = 0.005  # how long one poll waits once the client's own queue is empty

clock = time.perf_counter_ns


class Source:
    """Messages for the loop, and how long was spent waiting for a producer that had none.

    `is_complete`: nothing is produced while the window is open. Then a topic that has no `least` events left ends
    the stretch (`exhausted`), with those in hand kept for the next one; else the producer is waited for.
    """

    def __init__(
        self, client: Any, counters: Counters, is_producer_alive: Callable[[], bool], is_complete: bool = False
    ) -> None:
        self._client = client
        self._counters = counters
        self._is_producer_alive = is_producer_alive
        self._is_complete = is_complete
        self._in_hand: list[Any] = []  # messages of a batch that the topic's end cut short
        self.taken = 0  # events handed out
        self.starved_ns = 0
        self.exhausted = False
        self.deadline = 0  # of the clock, in ns; the loops ask for it at each operation

    def abandon(self) -> None:
        """Have the window end after the operation under way: something died that it needs. From any thread."""
        self.deadline = 0

    def take(self, least: int, most: int) -> list[bytes]:
        """Values of the next `least` messages, and of those at hand up to `most`.

        [] once the deadline has passed, or a complete topic has no `least` messages more.
        """
        messages: list[Any]
        if self._in_hand:
            messages, self._in_hand = self._in_hand, []
        else:
            messages = self._client.consume(most, 0)
        while len(messages) < least:
            if self._is_complete and self._counters.produced - self.taken < least:
                self.exhausted, self._in_hand = True, messages
                return []
            message = self._wait_for_one(self.taken + len(messages))
            if message is None:
                self._in_hand = messages
                return []
            messages.append(message)
            messages += self._client.consume(most - len(messages), 0)
        for message in messages:
            if message.error() is not None:
                check(message)
        self.taken += len(messages)
        return [message.value() for message in messages]

    def _wait_for_one(self, held: int) -> Any:
        """The next message; None once the deadline has passed. `held` events were read before it."""
        began = last = clock()
        while last < self.deadline:
            starved = self._counters.produced <= held
            message = self._client.poll(POLL_SECONDS)
            now = clock()
            if starved:
                self.starved_ns += now - last
                if not self._is_producer_alive():
                    raise StreamError("the producer died while the window was open")
            last = now
            if message is not None:
                return message
            if now - began > STALL_SECONDS * 1e9:
                raise StreamError(f"no event for {STALL_SECONDS:.0f} s; the broker stopped answering")
        return None
