"""Counter: a whole number under a key, to which many tasks and processes add.

Additions of one process are combined by `combiner.py`: those that wait at the same time are one txn, which adds their
sum. Each gets its own value in between, as if they were made one after the other. So the tasks of a process never
conflict, and need one round trip together. What the counter was after the last txn is remembered, so the next one is
sent without a read.

The key has the number as decimal text, so any client can read and write it.
"""

from typing import Final, TypeAlias

from etcd_aio import EtcdTimeoutError, Key, KeyValue, TxnResult, op
from etcd_aio.arguments import encode_key
from etcd_aio.base import UNSET, Timeout, when_constructed
from etcd_aio.calls import StoreCalls, Writer
from etcd_aio.errors import CounterError, CounterLimitError, InvalidRequestError, ResultLostError
from etcd_aio.recipes.calls import RecipeCalls
from etcd_aio.recipes.combiner import CombinedCall, Combiner
from etcd_aio.recipes.counter.sums import RefusedAddition, sums
from etcd_aio.types import KeyLike, shown_key

_MOST_DIGITS: Final = 1000  # Python converts more only if it is told to

_LARGEST: Final = 10**_MOST_DIGITS - 1

_Addition: TypeAlias = CombinedCall[int, int]


class Counter:
    """A counter: `counter = Counter(client, "visits")`; `await counter.add(1)` returns the value afterwards.

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
        self._key = encode_key(name, "name")
        self._look = op.get(self._key)
        self._minimum = None if minimum is None else _integer(minimum, "minimum")
        self._maximum = None if maximum is None else _integer(maximum, "maximum")
        if minimum is not None and maximum is not None and minimum > maximum:
            raise InvalidRequestError(f"minimum {minimum} is above maximum {maximum}")
        self._calls = RecipeCalls(client, writer, timeout)
        self._additions = Combiner[int, int](f"counter {self._key!r}", self._send, self._forget)
        self._value = 0
        self._known_revision: int | None = None  # at which the key had that value; None if that is not known

    @when_constructed
    def __repr__(self) -> str:
        return f"<Counter {shown_key(self._key)}>"

    async def add(self, number: int = 1, *, timeout: Timeout = UNSET) -> int:
        """Add a number; a negative one is subtracted. A counter that does not exist is 0.

        Returns:
            int: the value afterwards. No other addition of any process gets the same state.

        Raises:
            CounterLimitError: the value would leave the limits, or have more than 1 000 digits; it was not added.
            CounterError: the value of the key is not a number.
            EtcdError: as every txn. If `maybe_applied` is True, the number may have been added: a `writer` of
                exactly-once writes finds that out.

        Cancellation: as with every write, if it was sent already; otherwise it is not added.
        """
        deadline = self._calls.deadline(timeout)
        return await self._additions.call(_integer(number, "number"), deadline, self._late)

    async def get(self, *, timeout: Timeout = UNSET) -> int:
        """Read the value; 0 if the key does not exist.

        Raises:
            CounterError: the value of the key is not a number.
            EtcdError: as every read.
        """
        return self._number(await self._read(self._calls.deadline(timeout)))

    async def set(self, value: int, *, expected: int | None = None, timeout: Timeout = UNSET) -> bool:
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
        put = op.put(self._key, str(_integer(value, "value")))
        is_below = self._minimum is not None and value < self._minimum
        if is_below or (self._maximum is not None and value > self._maximum):
            raise InvalidRequestError(f"{value} is outside of the limits of the counter")
        deadline = self._calls.deadline(timeout)
        if expected is None:
            await self._commit(op.TxnOp(then=(put,)), deadline)
            return True
        _integer(expected, "expected")
        found = await self._read(deadline)
        while self._number(found) == expected:
            result = await self._put_at(0 if found is None else found.mod_revision, put, deadline)
            if result.succeeded:
                return True
            if isinstance(result, ResultLostError):
                found = await self._read(deadline)
            else:
                found = result[self._look]
        return False

    # Combining.

    async def _send(self, calls: list[_Addition]) -> bool:
        """Send one txn for all. Returns False after a conflict."""
        deadline = max(call.deadline for call in calls)
        if self._known_revision is None:
            self._learn(await self._read(deadline))
        batch, outcomes, total = self._sums(calls)
        if batch and total is None:  # what is remembered may be old, and nothing is sent that would tell
            self._learn(await self._read(deadline))
            batch, outcomes, total = self._sums(batch)
        if total is not None:
            for call in batch:
                call.is_sent = True
            put = op.put(self._key, str(total))
            result = await self._put_at(self._known_revision or 0, put, deadline)
            if not result.succeeded:
                if isinstance(result, ResultLostError):
                    self._forget()
                else:
                    self._learn(result[self._look])
                return False
            self._value, self._known_revision = total, result.revision
        for call, outcome in zip(batch, outcomes, strict=True):
            call.resolve(self._refused(outcome, call.work) if isinstance(outcome, RefusedAddition) else outcome)
        return True

    def _sums(self, calls: list[_Addition]) -> tuple[list[_Addition], list[int | RefusedAddition], int | None]:
        """The calls to send, and their sums. A call that has ended meanwhile has raised that nothing was added."""
        batch = [call for call in calls if not call.has_ended]
        least = -_LARGEST if self._minimum is None else self._minimum
        most = _LARGEST if self._maximum is None else self._maximum
        return batch, *sums(self._value, [call.work for call in batch], least, most)

    def _learn(self, kv: KeyValue | None) -> None:
        self._value = self._number(kv)
        self._known_revision = 0 if kv is None else kv.mod_revision

    def _forget(self) -> None:
        self._known_revision = None

    async def _put_at(self, revision: int, put: op.PutOp, deadline: float) -> TxnResult | ResultLostError:
        """Put a number if the key was last changed at this revision, else read it.

        If what was read is compacted, the error is returned: it knows as well whether the number was put.
        """
        guard = Key(self._key).mod_revision == revision
        try:
            return await self._commit(op.TxnOp((guard,), (put,), (self._look,)), deadline)
        except ResultLostError as lost:
            return lost

    async def _commit(self, txn: op.TxnOp, deadline: float) -> TxnResult:
        return await self._calls.commit(txn, deadline)

    async def _read(self, deadline: float) -> KeyValue | None:
        return await self._calls.do(self._look, deadline)

    def _number(self, kv: KeyValue | None) -> int:
        if kv is None:
            return 0
        text = kv.value.removeprefix(b"-")
        if not (text.isdigit() and len(text) <= _MOST_DIGITS):
            raise CounterError(f"the value of {shown_key(self._key)} is not a whole number in decimal digits")
        return int(kv.value)

    def _refused(self, refusal: RefusedAddition, number: int) -> CounterLimitError:
        bound, limit = ("maximum", self._maximum) if number > 0 else ("minimum", self._minimum)
        if limit is None:
            text = f"{shown_key(self._key)} would have more than {_MOST_DIGITS} digits"
        else:
            text = f"{shown_key(self._key)} is {refusal.value}, and {number:+} would pass its {bound} of {limit}"
        return CounterLimitError(text, value=refusal.value)

    def _late(self, is_sent: bool) -> EtcdTimeoutError:
        error = EtcdTimeoutError(f"the counter {shown_key(self._key)} was not changed in time")
        error.maybe_applied = is_sent
        return error


def _integer(number: int, what: str) -> int:
    if not isinstance(number, int) or isinstance(number, bool):
        raise TypeError(f"{what} must be an int, got {type(number).__name__}")
    if abs(number) >= 10**_MOST_DIGITS:
        raise InvalidRequestError(f"{what} has more than {_MOST_DIGITS} digits")
    return number
