"""A client whose mutations are applied late, as when a frozen member goes on long after the client has left it.

Any mutation may end with an error that says "maybe applied": its only copy has been applied, or is applied later. One
that may be repeated (`retry="always"`) also succeeds while other copies of it are applied later. A client cannot tell
this from a real cluster in trouble, so whatever is right on one must be right here.
"""

import asyncio
import random
from contextlib import suppress
from typing import Any, Final

from etcd_aio import EtcdError
from etcd_aio.errors import ConnectionLostError
from tests.support.backends import ClientWithADetour

_LATEST: Final = 3.0  # seconds
_COPIES: Final = 2


class LateClient(ClientWithADetour):
    """A client, with trouble for a part of its mutations.

    Args:
        endpoints: of the client.
        chance: the part of the mutations that get into trouble.
        seed: of the choice.
        options: of the client.
    """

    def __init__(self, endpoints: list[str], *, chance: float, seed: str, **options: Any) -> None:
        super().__init__(endpoints, **options)
        self._chance = chance
        self._random = random.Random(seed)
        self._late_copies: set[asyncio.Task[None]] = set()

    async def detour(self, operation: Any, **options: Any) -> Any:
        """Send one operation, and perhaps copies of it later."""
        if operation.is_read_only or self._random.random() >= self._chance:
            return await self.send(operation, **options)
        is_now = self._random.random() < 0.5
        if options.get("retry") == "always":
            for _ in range(_COPIES):
                self._send_later(operation)
            try:
                return await self.send(operation, **options)
            except EtcdError as failure:
                failure.maybe_applied = True  # by one of the copies
                raise
        if is_now:
            await self.send(operation, **options)
        else:
            self._send_later(operation)
        error = ConnectionLostError("the connection broke, in this test")
        error.maybe_applied = True
        raise error

    def _send_later(self, operation: Any) -> None:
        task = asyncio.create_task(self._send(operation, self._random.random() * _LATEST))
        self._late_copies.add(task)
        task.add_done_callback(self._late_copies.discard)

    async def _send(self, operation: Any, wait: float) -> None:
        await asyncio.sleep(wait)
        with suppress(EtcdError):
            await self.send(operation, retry="never")
