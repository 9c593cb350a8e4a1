"""Options of DuckLake: how many rows are inlined, and how conflicting commits of several clients are retried."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tidemark.systems.full_durability import DurabilityOptions
from tidemark.systems.in_bucket import LOCAL, RTT, STORAGE
from tidemark.systems.writers import of_retries


@dataclass(frozen=True, slots=True)
class DuckLakeOptions(DurabilityOptions):
    inline_rows: int | None = field(
        default=None,
        metadata={
            "help": "Writes of up to this many rows stay in the catalog until they are flushed "
            "(DATA_INLINING_ROW_LIMIT). Left out: no write, or each one if the system is named inlined. DuckLake "
            "1.0 left alone: 10.",
            "minimum": 0,
            "examples": (10,),
        },
    )


@dataclass(frozen=True, slots=True)
class RetryingOptions(DuckLakeOptions):
    commit_retries: int | None = field(default=None, metadata=of_retries("ducklake_max_retry_count", "DuckLake: 10"))
    retry_wait_ms: int | None = field(
        default=None,
        metadata={
            "help": "Wait before the first of these, which grows by half with each (ducklake_retry_wait_ms); DuckLake: "
            "100.",
            "minimum": 1,
            "examples": (5,),
        },
    )

    @property
    def statements(self) -> tuple[str, ...]:
        """Settings of a client, as SQL."""
        given: Mapping[str, int | None] = {
            "ducklake_max_retry_count": self.commit_retries,
            "ducklake_retry_wait_ms": self.retry_wait_ms,
        }
        return tuple(f"SET {name} = {value}" for name, value in given.items() if value is not None)


@dataclass(frozen=True, slots=True)
class DuckLakePostgresOptions(RetryingOptions):
    storage: str = field(default=LOCAL, metadata=STORAGE)
    rtt_ms: int | None = field(default=None, metadata=RTT)
