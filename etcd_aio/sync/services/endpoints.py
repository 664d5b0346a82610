"""Endpoints, for blocking code.

Made by `python -m release.facade --write` from `etcd_aio.services.endpoints`: do not edit.
"""

from etcd_aio.arguments import KeyLike
from etcd_aio.base import UNSET, Timeout
from etcd_aio.services import Choice, PickPolicy, ServiceChange, ServiceEndpoint
from etcd_aio.services import Endpoints as AsyncEndpoints
from etcd_aio.sync.cache.derived import Derived
from etcd_aio.sync.calls.store_calls import StoreCalls


class Endpoints(Derived[tuple[ServiceEndpoint, ...], ServiceChange]):
    """The endpoints of a service: `with client.resolve("svc/web") as web:`.

    Entering reads them; from then on they follow etcd. All changes of one txn are seen at once. Entries that are not in
    the format of Go's `naming/endpoints` are passed over, and logged once.

    - In an outage the last endpoints stay, however long it is, and `age` grows.
    - If the user may not read the service any more, they stay too; `error` says so, and it is tried again.
    - If etcd has no endpoint any more, they stay for `keep_last` seconds, which is logged.
    - When the block is left, or the client is closed, they stay as they are for ever.

    Any number of threads may use one object.

    Args:
        store: the client, or a namespace of it.
        target: the service. Its keys are `<target>/<name>`.
        keep_last: seconds for which the last endpoints stay when etcd has none any more. Default: 0.
        keep_current: see `Store.resolve`.
        timeout: seconds for a read. Default: that of the client.

    Raises:
        InvalidRequestError, EmptyKeyError, TypeError: an argument is invalid.
    """

    def __init__(
        self,
        store: StoreCalls,
        target: KeyLike,
        *,
        keep_last: float = 0.0,
        keep_current: float | None = None,
        timeout: Timeout = UNSET,
    ) -> None:
        self._construct(AsyncEndpoints, store, target, keep_last=keep_last, keep_current=keep_current, timeout=timeout)

    @property
    def endpoints(self) -> tuple[ServiceEndpoint, ...]:
        """The endpoints, as they are here, in the order of their keys. It is a plain read from memory.

        Raises:
            ClientUsageError: the block was not entered.
        """
        return self._aio.endpoints

    def __len__(self) -> int:
        return len(self._aio)

    def __bool__(self) -> bool:
        return bool(self._aio)

    @property
    def is_keeping_last(self) -> bool:
        """Whether etcd has no endpoint any more, and these are the last ones that it had."""
        return self._aio.is_keeping_last

    def wait_endpoints(self, *, at_least: int = 1, timeout: float | None = None) -> tuple[ServiceEndpoint, ...]:
        """Wait until there are so many endpoints.

        Args:
            at_least: how many.
            timeout: seconds. Default: None, no limit.

        Returns:
            The endpoints.

        Raises:
            EtcdTimeoutError: there were fewer for so long.
            ClientUsageError: the block was not entered, or was left, or the client is closed.

        Ctrl-C leaves nothing behind.
        """
        return self._run(self._aio.wait_endpoints, at_least=at_least, timeout=timeout)

    def pick(self, policy: PickPolicy | Choice = "round_robin") -> ServiceEndpoint:
        """Choose an endpoint. It is a plain read from memory.

        Args:
            policy: `"round_robin"` takes all in turn, `"random"` takes any; or a function that gets all of them.

        Raises:
            NoServiceEndpointError: there is none now. `wait_endpoints` waits for one.
            InvalidRequestError: there is no such policy.
            ClientUsageError: the block was not entered.
        """
        return self._aio.pick(policy)
