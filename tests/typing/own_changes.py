import dataclasses
from typing import TypeVar, cast

from etcd_aio import UNSET, Client, Operation, RetryMode, Store, Timeout, op
from etcd_aio.backend import Backend
from etcd_aio.errors import PermissionDeniedError

R = TypeVar("R")


class Lowered:
    """A backend that puts values in lower case, or nothing."""

    def __init__(self, backend: Backend, *, may_write: bool = True) -> None:
        self._backend = backend
        self._may_write = may_write
        self.shared = backend.shared
        self.key_space = backend.key_space
        self.leases = backend.leases
        self.chunks, self.watch = backend.chunks, backend.watch

    async def do(
        self,
        operation: Operation[R],
        *,
        timeout: Timeout = UNSET,
        retry: RetryMode | None = None,
    ) -> R:
        if not (operation.is_read_only or self._may_write):
            raise PermissionDeniedError("this store is for reading")
        if isinstance(operation, op.PutOp):
            value = operation.value.lower()
            changed = dataclasses.replace(operation, value=value)
            operation = cast("Operation[R]", changed)
        return await self._backend.do(operation, timeout=timeout, retry=retry)
