"""The producer process's connection to a broker."""

from __future__ import annotations

import sys
import time
from typing import Any

import confluent_kafka

ANSWER_SECONDS = 30.0  # for the broker to answer a new client
LAST_SECONDS = 5.0  # for in-flight events when a topic ends
# A broker that has just started has no producer ids yet. It refuses the first request, obtains a block of ids within
# milliseconds, and librdkafka retries only after half a second.
NUMBERS_SECONDS = 0.05


class Connection:
    """One client for all topics, until one of them fails."""

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap
        self.failure: str | None = None
        settings = {
            "bootstrap.servers": bootstrap,
            "enable.idempotence": True,  # in order, each once: event k is at offset k + 1
            # The messages of a batch are similar, so it compresses 17-fold: less work for the broker in the window.
            "compression.type": "lz4",
            "linger.ms": 20,
            "batch.size": 4_000_000,
            "message.max.bytes": 8_000_000,
            # Few enough that a slow machine sends each within message.timeout.ms, which counts the wait in this queue.
            "queue.buffering.max.messages": 100_000,
            "queue.buffering.max.kbytes": 250_000,
            "delivery.report.only.error": True,
            "on_delivery": self._on_error,
            "error_cb": self._on_broker_error,
            "message.timeout.ms": 30_000,
            "log_level": 3,
        }
        first = confluent_kafka.Producer(settings)
        first.list_topics(timeout=ANSWER_SECONDS)
        time.sleep(NUMBERS_SECONDS)
        self.client = confluent_kafka.Producer(settings)

    def _on_error(self, error: Any, _message: Any) -> None:
        if error is not None:
            self.failure = str(error)

    def _on_broker_error(self, error: Any) -> None:
        print(f"broker: {error}", file=sys.stderr, flush=True)

    def is_spent(self) -> bool:
        """Return True if earlier topics have failed or in-flight events, which would be attributed to the next one."""
        return self.client.flush(LAST_SECONDS) > 0 or self.failure is not None
