"""Recorded: a store that records what goes through it: on top of a client, a namespace or an ordered store."""

from typing import Any, TypeVar

from etcd_aio import EtcdError, Operation, Store, op
from etcd_aio.base.call_options import UNSET, RetryMode, Timeout
from etcd_aio.store import Ordered
from tests.evidence import model
from tests.evidence.operations import answer_of, found_by, mark_of, request_of
from tests.evidence.recorder import Mark, Recorder

R = TypeVar("R")


class Recording:
    """The backend of a store that records its operations.

    Args:
        store: whose operations they are.
        recorder: records.
        prefix: that the store puts before the keys.
    """

    def __init__(self, store: Store, recorder: Recorder, prefix: str) -> None:
        self.store = store
        self.beneath = backend = store.backend
        self.recorder = recorder
        self.prefix = prefix
        self.shared, self.key_space, self.leases = backend.shared, backend.key_space, backend.leases
        self.chunks, self.watch = backend.chunks, backend.watch  # they are not recorded

    async def do(self, operation: Operation[R], *, timeout: Timeout = UNSET, retry: RetryMode | None = None) -> R:
        """Send one operation, and record it."""
        sent: Any = operation
        if isinstance(operation, op.GetOp):  # whose result has no revision
            sent = op.range(operation.key, revision=operation.revision, serializable=operation.serializable)
        if isinstance(sent, op.RangeOp) and sent.keys_only and not sent.keys.range_end:
            # By exactly-once writes, of what a lost answer had; the model always has the value of a single key.
            unseen: Any = await self.beneath.do(sent, timeout=timeout, retry=retry)
            return unseen  # type: ignore[no-any-return] # the result of this operation
        if isinstance(sent, op.RangeOp) and sent.serializable:
            result: Any = await self._snapshot(sent, timeout, retry)
        else:
            result = await self.record(sent, timeout, retry)
        if isinstance(operation, op.GetOp):
            result = result.kvs[0] if result.kvs else None
        return result  # type: ignore[no-any-return] # the result of this operation

    async def record(self, operation: Any, timeout: Timeout, retry: RetryMode | None) -> Any:
        """Send an operation on, and record it."""
        name = mark_of(operation)
        found = await self.recorder.call(
            request_of(operation, self.prefix),
            self.beneath.do(operation, timeout=timeout, retry=retry),
            lambda result: answer_of(operation, result, self.prefix),
            None if name is None else Mark(name),
        )
        if isinstance(found, EtcdError):
            raise found
        return found

    async def _snapshot(self, read: op.RangeOp, timeout: Timeout, retry: RetryMode | None) -> Any:
        floor = self.store.revision if isinstance(self.store, Ordered) else 0
        result: Any = await self.beneath.do(read, timeout=timeout, retry=retry)
        keys = request_of(read, self.prefix)["Range"]
        kind = "ordered read" if isinstance(self.store, Ordered) else "serializable read"
        shown = found_by(read, result, self.prefix)
        self.recorder.snapshot(kind, _without_revision(keys), shown, result.header.revision, floor)
        return result


class Recorded(Store):
    """A store that records its operations. A read of one member's own state is held against the revision that it names.

    Args:
        store: the client, or a store that stands on it.
        recorder: records.
        prefix: that the store puts before the keys.
    """

    def __init__(self, store: Store, recorder: Recorder, prefix: str = "") -> None:
        super().__init__(Recording(store, recorder, prefix))
        self._store = store
        self.recorder = recorder
        self.prefix = prefix

    async def listed(self, start: str, end: str, *, revision: int = 0, page_size: int = 3) -> int:
        """Scan an interval, and record it as one read at one revision. Returns that."""
        scan = self._store.scan(start, range_end=end, revision=revision, page_size=page_size)

        async def all_of_it() -> list[model.Json]:
            return [model.key_value(kv, prefix=self.prefix) async for kv in scan]

        keys = model.options(self.prefix + start, self.prefix + end)
        if revision:  # the scan does not tell how far the store was
            kvs = await all_of_it()
            self.recorder.snapshot("scan of an old revision", keys, model.found(kvs), revision)
        else:
            found = await self.recorder.call(
                model.read(keys), all_of_it(), lambda kvs: model.range_answer(model.found(kvs), scan.revision)
            )
            if isinstance(found, EtcdError):
                raise found
        return scan.revision

    async def grant(self, lease: int, ttl: int) -> None:
        """Grant a lease, and record it."""
        call = self.recorder.begin(model.grant(lease))
        mark = Mark(f"grant:{lease}", free=True)
        try:
            result = await self._store.leases.grant(ttl, id=lease)
        except EtcdError as error:
            # It is not used, so the model need not know whether it is there.
            call.request = model.grant(0)
            self.recorder.failed(call, error, mark)
            raise
        self.recorder.end(call, {"LeaseGrant": {"LeaseID": 0}, "Revision": result.header.revision})
        self.recorder.claim(mark, "applied")

    async def revoke(self, lease: int, *, is_repeated: bool) -> None:
        """Revoke a lease, and record it. The revision of a call that may be repeated may be that of a later answer."""

        def output(result: Any) -> model.Json:
            if is_repeated:
                return model.applied_at()
            return {"LeaseRevoke": {}, "Revision": result.header.revision}

        revoking = self._store.leases.revoke(lease, retry="safe" if is_repeated else "never")
        mark = Mark(f"revoke:{lease}", free=is_repeated)
        found = await self.recorder.call(model.revoke(lease), revoking, output, mark)
        if isinstance(found, EtcdError):
            raise found


def _without_revision(keys: model.Json) -> model.Json:
    return {name: value for name, value in keys.items() if name != "Revision"}
