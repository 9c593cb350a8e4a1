"""Section `ticks` of the configuration."""

from __future__ import annotations

from typing import Annotated

from msgspec import Struct

from tidemark.settings import Count, Protocols, Seconds, Shipped, about


class Protocol(Struct, frozen=True, kw_only=True):
    """Named set of sizes."""

    window_seconds: Annotated[Seconds, about("Length of one measured window, in seconds.")]
    runs: Annotated[Count, about("Runs of a series.")]


class TicksConfig(Struct, frozen=True, kw_only=True):
    """Length of a sleep, next to the length that was asked for."""

    protocols: Protocols[Protocol] = Shipped(smoke={"window_seconds": 0.4, "runs": 3})
    sleep_ms: Annotated[float, about("Milliseconds of a sleep.", gt=0)] = 2


CONFIG = TicksConfig
