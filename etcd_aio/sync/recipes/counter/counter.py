"""Counter, for blocking code.

Made by `python -m release.facade --write` from `etcd_aio.recipes.counter.counter`: do not edit.
"""

from typing import ClassVar

from etcd_aio.arguments import KeyLike
from etcd_aio.base import UNSET, Timeout
from etcd_aio.portal import Facade
from etcd_aio.recipes import Counter as AsyncCounter
from etcd_aio.sync.calls.store_calls import StoreCalls
from etcd_aio.sync.calls.writer import Writer


class Counter(Facade):
    """A counter: `counter = Counter(client, "visits")`; `counter.add(1)` returns the value afterwards.

    One object for each counter and process is best: calls of one object are combined into one txn.

    Args:
        client: the client, or a store that wraps one.
        name: the key.
        minimum: the smallest value that `add` leaves. Default: None, no limit.
        maximum: the largest one. Default: None, no limit.
        writer: makes the txns, such as `client.exactly_once()`, with which `add` is exact although answers are lost.
            Default: the client.
        timeout: seconds for a call that has no `timeout` of its own; None for no limit.
            Default: that of the client.

    Raises:
        InvalidRequestError, EmptyKeyError, TypeError: an argument is invalid.
    """

    _survives_fork: ClassVar[bool] = True

    def __init__(
        self,
        client: StoreCalls,
        name: KeyLike,
        *,
        minimum: int | None = None,
        maximum: int | None = None,
        writer: Writer | None = None,
        timeout: Timeout = UNSET,
    ) -> None:
        self._construct(AsyncCounter, client, name, minimum=minimum, maximum=maximum, writer=writer, timeout=timeout)

    def add(self, number: int = 1, *, timeout: Timeout = UNSET) -> int:
        """Add a number; a negative one is subtracted. A counter that does not exist is 0.

        Returns:
            int: the value afterwards. No other addition of any process gets the same state.

        Raises:
            CounterLimitError: the value would leave the limits, or have more than 1 000 digits; it was not added.
            CounterError: the value of the key is not a number.
            EtcdError: as every txn. If `maybe_applied` is True, the number may have been added: a `writer` of
                exactly-once writes finds that out.

        Ctrl-C: as with every write, if it was sent already; otherwise it is not added.
        """
        return self._run(self._aio.add, number, timeout=timeout)

    def get(self, *, timeout: Timeout = UNSET) -> int:
        """Read the value; 0 if the key does not exist.

        Raises:
            CounterError: the value of the key is not a number.
            EtcdError: as every read.
        """
        return self._run(self._aio.get, timeout=timeout)

    def set(self, value: int, *, expected: int | None = None, timeout: Timeout = UNSET) -> bool:
        """Set the value, whatever it is, or only if it is the expected one.

        Args:
            value: the new value.
            expected: the value that it must have; 0 also means that the key may be missing. Default: None, any.
            timeout: seconds for the whole call; None for no limit.

        Returns:
            bool: whether it was set.

        Raises:
            InvalidRequestError: the value is outside of the limits.
            CounterError: there is an expected value, and that of the key is not a number.
            EtcdError: as every txn.
        """
        return self._run(self._aio.set, value, expected=expected, timeout=timeout)
