"""Endpoints: the endpoints of a service, kept up to date in memory.

One rule says which endpoints there are: those of etcd, at one revision. In an outage, and while the user may not read
them, the last ones stay for any time. If etcd has none any more, the last ones stay for `keep_last` seconds.
"""

import asyncio
import logging
import random
from collections.abc import Callable, Sequence
from typing import ClassVar, Final, Literal, TypeAlias, get_args

from etcd_aio import EtcdTimeoutError, KeyLike, KeyRange
from etcd_aio.arguments import finite_seconds, one_of, whole_number
from etcd_aio.base import UNSET, Timeout, deadline_after, start_timer_at
from etcd_aio.cache import Derived
from etcd_aio.calls import StoreCalls
from etcd_aio.errors import ClientUsageError, NoServiceEndpointError
from etcd_aio.services.endpoint_json import ServiceEndpoint, decode_entry, target_prefix
from etcd_aio.services.last_list import LastList, ServiceChange, change_between
from etcd_aio.types import shown_key

PickPolicy: TypeAlias = Literal["round_robin", "random"]
"""How `pick` chooses: all in turn, or any."""

Choice: TypeAlias = Callable[[Sequence[ServiceEndpoint]], ServiceEndpoint]
"""A function that chooses one of the endpoints, of which there is at least one."""

logger: Final = logging.getLogger("etcd_aio.naming")


class Endpoints(Derived[tuple[ServiceEndpoint, ...], ServiceChange]):
    """The endpoints of a service: `async with client.resolve("svc/web") as web:`.

    Entering reads them; from then on they follow etcd. All changes of one txn are seen at once. Entries that are not in
    the format of Go's `naming/endpoints` are passed over, and logged once.

    - In an outage the last endpoints stay, however long it is, and `age` grows.
    - If the user may not read the service any more, they stay too; `error` says so, and it is tried again.
    - If etcd has no endpoint any more, they stay for `keep_last` seconds, which is logged.
    - When the block is left, or the client is closed, they stay as they are for ever.

    Any number of tasks may use one object. The clients of `etcd_aio.contrib.discovery` share one.

    Args:
        store: the client, or a namespace of it.
        target: the service. Its keys are `<target>/<name>`.
        keep_last: seconds for which the last endpoints stay when etcd has none any more. Default: 0.
        keep_current: see `Store.resolve`.
        timeout: seconds for a read. Default: that of the client.

    Raises:
        InvalidRequestError, EmptyKeyError, TypeError: an argument is invalid.
    """

    usage: ClassVar[str] = "endpoints cannot be awaited: write `async with client.resolve(...) as endpoints:`"
    _noun: ClassVar[str] = "an object with endpoints"

    def __init__(
        self,
        store: StoreCalls,
        target: KeyLike,
        *,
        keep_last: float = 0.0,
        keep_current: float | None = None,
        timeout: Timeout = UNSET,
    ) -> None:
        prefix = target_prefix(target)
        self._shown = shown_key(prefix[:-1])
        super().__init__(
            store,
            KeyRange.of(prefix=prefix),
            what=f"endpoints of {self._shown}",
            logger=logger,
            decode=decode_entry,
            keep_current=keep_current,
            timeout=timeout,
        )
        self._list = LastList(finite_seconds(keep_last, "keep_last"))
        self._timer: asyncio.TimerHandle | None = None
        self._picked = 0

    # State.

    @property
    def endpoints(self) -> tuple[ServiceEndpoint, ...]:
        """The endpoints, as they are here, in the order of their keys. It is a plain read from memory.

        Raises:
            ClientUsageError: the block was not entered.
        """
        return self._read()

    def __len__(self) -> int:
        return len(self.endpoints)

    def __bool__(self) -> bool:
        return True  # also without endpoints: it is a connection, rather than a container

    @property
    def is_keeping_last(self) -> bool:
        """Whether etcd has no endpoint any more, and these are the last ones that it had."""
        return self._list.empty_since is not None

    async def wait_endpoints(self, *, at_least: int = 1, timeout: float | None = None) -> tuple[ServiceEndpoint, ...]:
        """Wait until there are so many endpoints.

        Args:
            at_least: how many.
            timeout: seconds. Default: None, no limit.

        Returns:
            The endpoints.

        Raises:
            EtcdTimeoutError: there were fewer for so long.
            ClientUsageError: the block was not entered, or was left, or the client is closed.

        Cancellation leaves nothing behind.
        """
        whole_number(at_least, "at_least")
        deadline = deadline_after(timeout, asyncio.get_running_loop().time())
        while len(self.endpoints) < at_least:
            if self.has_ended:
                raise ClientUsageError("the block of the endpoints has ended")
            if not await self._moved.wait(deadline):
                raise EtcdTimeoutError(f"there were fewer than {at_least} endpoints of {self._shown} in time")
        return self.endpoints

    def pick(self, policy: PickPolicy | Choice = "round_robin") -> ServiceEndpoint:
        """Choose an endpoint. It is a plain read from memory.

        Args:
            policy: `"round_robin"` takes all in turn, `"random"` takes any; or a function that gets all of them.

        Raises:
            NoServiceEndpointError: there is none now. `wait_endpoints` waits for one.
            InvalidRequestError: there is no such policy.
            ClientUsageError: the block was not entered.
        """
        one_of(get_args(PickPolicy), policy, "policy", or_function=True)
        endpoints = self.endpoints
        if not endpoints:
            raise NoServiceEndpointError(f"there is no endpoint of {self._shown}")
        if callable(policy):
            return policy(endpoints)
        if policy == "random":
            return random.choice(endpoints)
        self._picked += 1
        return endpoints[(self._picked - 1) % len(endpoints)]

    # As a value that is made of a cache.

    def _make(self) -> tuple[ServiceEndpoint, ...]:
        """Return the endpoints of etcd, or the last ones for a while if it has none."""
        cache, now = self._cache, asyncio.get_running_loop().time()
        found = []
        for key, (address, metadata) in cache.range().items():
            kv = cache.kv(key)
            found.append(ServiceEndpoint(key, address, metadata, 0 if kv is None else kv.mod_revision))
        was_keeping = self.is_keeping_last
        self._list.take(tuple(found), now)
        due = self._list.due
        if due is not None and not was_keeping:
            text = "%s has no endpoint; the last %d are kept for %.0f s"
            self._log.warning(text, self._shown, len(self._list.endpoints), due - now)
            self._timer = start_timer_at(due, self._give_up)
        elif due is None and was_keeping:
            self._log.info("%s has %d endpoints again", self._shown, len(found))
            self._stop_timer()
        return self._list.endpoints

    def _change(
        self, before: tuple[ServiceEndpoint, ...] | None, value: tuple[ServiceEndpoint, ...]
    ) -> ServiceChange | None:
        change = change_between(before or (), value)
        return change if before is None or change.added or change.removed else None

    def _give_up(self) -> None:
        self._timer = None
        self._list.give_up()
        self._log.warning("%s still has no endpoint; the last ones are no longer used", self._shown)
        self._take(())

    def _end(self) -> None:
        self._stop_timer()
        super()._end()

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
