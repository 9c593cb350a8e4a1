"""Memory budget for requests: a fixed number of bytes with a FIFO queue for those that wait."""

from __future__ import annotations

import asyncio
from collections import deque


class Room:
    """Bytes of requests that were accepted and not yet answered; served first come, first served."""

    def __init__(self, size: int) -> None:
        self.size = self.free = size
        self.least_free = size
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()

    async def take(self, size: int, seconds: float) -> bool:
        """Take `size` bytes, which must not exceed the total; return False if they did not become free in `seconds`."""
        if not self._waiting and size <= self.free:
            self._give(size)
            return True
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((size, turn))
        try:
            async with asyncio.timeout(seconds):
                await turn
        except BaseException as error:
            if turn.done() and not turn.cancelled():  # granted at the same moment
                self.put_back(size)
            self._waiting = deque(each for each in self._waiting if each[1] is not turn)
            self._next()
            if isinstance(error, TimeoutError):
                return False
            raise
        return True

    def put_back(self, size: int) -> None:
        self.free += size
        self._next()

    def _next(self) -> None:
        while self._waiting and self._waiting[0][0] <= self.free:
            size, turn = self._waiting.popleft()
            if not turn.done():
                self._give(size)
                turn.set_result(None)

    def _give(self, size: int) -> None:
        self.free -= size
        self.least_free = min(self.least_free, self.free)
