"""Messages for the timed loop, as fast as the client returns them."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from tidemark.errors import StreamError
from tidemark.stream.consumer import check
from tidemark.stream.counters import Counters

STALL_SECONDS = 30.0  # without any event although the producer has some: the broker has failed
POLL_SECONDS = 0.005  # timeout of one poll once the client's own queue is empty

clock = time.perf_counter_ns


class Source:
    """Messages for the timed loop, and the time spent waiting for a producer that had none.

    `is_complete`: nothing is produced while the window is open. A topic with fewer than `least` events left then ends
    the stretch (`exhausted`), and messages already read are kept for the next one; otherwise wait for the producer.
    """

    def __init__(
        self, client: Any, counters: Counters, is_producer_alive: Callable[[], bool], is_complete: bool = False
    ) -> None:
        self._client = client
        self._counters = counters
        self._is_producer_alive = is_producer_alive
        self._is_complete = is_complete
        self._in_hand: list[Any] = []  # messages of a batch cut short by the topic's end or the deadline
        self.taken = 0  # events handed out
        self.starved_ns = 0
        self.exhausted = False
        self.deadline = 0  # on `clock`, in ns; the loops read it at each operation

    def cancel(self) -> None:
        """End the window after the current operation because a required process died. Callable from any thread."""
        self.deadline = 0

    def take(self, least: int, most: int) -> list[bytes]:
        """Return the values of at least `least` messages, and of up to `most` if they are available.

        Return [] after the deadline, or if a complete topic has fewer than `least` messages left.
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
        """Return the next message, or None after the deadline. `held` events were read before it."""
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
