"""A client whose operations are recorded, held back, or lose their answers; for what stands on the client.

client.sent                    every operation, in order
client.lose_answer(is_it)      the next operation for which `is_it` is true is carried out, and its answer is lost
client.hold_back(is_it)        that operation is not sent; it is returned, to be sent by `really_do` when it is late
client.refuse(is_it, error)    that operation is not sent; the error is raised
client.before = hook           is awaited with each operation before it is sent
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from etcd_aio import ConnectionLostError, EtcdError, Operation, op
from tests.support.backends import ClientWithADetour

Predicate: TypeAlias = Callable[[Any], bool]


def is_entering(operation: object) -> bool:
    """The txn that puts a key into a line."""
    return isinstance(operation, op.TxnOp) and any(isinstance(one, op.PutOp) for one in operation.then)


def is_leaving(operation: object) -> bool:
    """The txn that deletes a key from its line."""
    return isinstance(operation, op.TxnOp) and any(isinstance(one, op.DeleteOp) for one in operation.then)


@dataclass
class _Fault:
    is_it: Predicate
    is_sent: bool
    error: EtcdError | None
    caught: "asyncio.Future[Operation[Any]]" = field(default_factory=lambda: asyncio.get_running_loop().create_future())


class TamperedClient(ClientWithADetour):
    """See above."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.sent: list[Operation[Any]] = []
        self.before: Callable[[Operation[Any]], Awaitable[None]] | None = None
        self._faults: list[_Fault] = []

    def lose_answer(self, is_it: Predicate) -> "asyncio.Future[Operation[Any]]":
        return self._add(_Fault(is_it, True, _ambiguous()))

    def hold_back(self, is_it: Predicate) -> "asyncio.Future[Operation[Any]]":
        return self._add(_Fault(is_it, False, _ambiguous()))

    def refuse(self, is_it: Predicate, error: EtcdError) -> "asyncio.Future[Operation[Any]]":
        return self._add(_Fault(is_it, False, error))

    def _add(self, fault: _Fault) -> "asyncio.Future[Operation[Any]]":
        self._faults.append(fault)
        return fault.caught

    async def really_do(self, operation: Operation[Any]) -> Any:
        return await self.send(operation)

    async def detour(self, operation: Operation[Any], **options: Any) -> Any:
        self.sent.append(operation)
        if self.before is not None:
            await self.before(operation)
        fault = next((one for one in self._faults if one.is_it(operation)), None)
        if fault is None:
            return await self.send(operation, **options)
        self._faults.remove(fault)
        if fault.is_sent:
            await self.send(operation, **options)
        fault.caught.set_result(operation)
        if fault.error is not None:
            raise fault.error
        return None


def _ambiguous() -> EtcdError:
    error = ConnectionLostError("the answer is lost")
    error.maybe_applied = True
    return error
