"""Watch hub: where the watches of a client meet the stream and the store.

Knows: the multiplexer, its supervisor, how keys are listed. Never knows: what a user does with a watch, or which phase
follows which.
"""

import asyncio
import random
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from math import inf
from typing import TYPE_CHECKING, Final, TypeAlias

from etcd_aio import methods, pb
from etcd_aio.aio import start_background_task
from etcd_aio.backoff import Backoff
from etcd_aio.call_options import UNSET, RetryMode, Timeout
from etcd_aio.deadline import time_left
from etcd_aio.error_handler import unexpected_error
from etcd_aio.errors import (
    CompactedError,
    EtcdError,
    FutureRevisionError,
    PermissionDeniedError,
    RequestTooLargeError,
    ServerError,
)
from etcd_aio.kv import DEFAULT_PAGE_SIZE, RangeOp, ReadPage, ScanPages
from etcd_aio.pb import WatchCreateRequest, WatchRequest
from etcd_aio.types import KeyRange, KeyValue, RangeResult, WatchFilter, version_tuple
from etcd_aio.watch.resync import difference
from etcd_aio.watch.state import Phase, WatchState
from etcd_aio.watch.stream import WatchStream

if TYPE_CHECKING:
    from etcd_aio.error_handler import Invoker

MAX_REQUEST_BYTES: Final = 512 * 1024
"""What every etcd takes, whatever its `--max-request-bytes`: it adds as much to that. A larger request might
be refused, which etcd does by ending the stream, with all watches on it."""

_FRAME_BYTES: Final = 64  # of a creation, at most, beside its keys

_BACKOFF: Final = Backoff(initial=0.1, multiplier=2.0, maximum=5.0, jitter=0.2)

OnPage: TypeAlias = Callable[[RangeResult], None]


class WatchService:
    """All watches of a client. Making it touches nothing.

    Args:
        invoker: has the stream.
        read_page: reads a page of a range.
    """

    def __init__(self, invoker: "Invoker", read_page: ReadPage) -> None:
        self._invoker = invoker
        self._read_page = read_page
        self._watches = WatchStream(self._outage_error)
        self._supervisor = invoker.supervise(methods.WATCH, self._watches, "watch")
        self._watches.wake = self._supervisor.wake
        self._watches.renew_token = self._renew_token
        self._watches.check_store = self._check_store
        self._watches.check_marks = self._check_marks
        # They end by themselves, with the client at the latest.
        self._renewal: asyncio.Task[None] | None = None
        self._refusals: deque[tuple[WatchState, ServerError]] = deque()  # that the renewal is about
        self._check: asyncio.Task[None] | None = None
        self._mark_check: asyncio.Task[None] | None = None
        self._watches.explain = self._explain

    @property
    def clock(self) -> Callable[[], float]:
        """The clock of every instant here."""
        return self._invoker.clock

    def add(self, watch: WatchState) -> None:
        """A new watch.

        Raises:
            ClientUsageError: the client belongs to another loop or process.
            RequestTooLargeError: some server might refuse it, which would end all watches.
        """
        size = _FRAME_BYTES + len(watch.options.keys.key) + len(watch.options.keys.range_end)
        most = min(MAX_REQUEST_BYTES, self._invoker.max_send_bytes)
        if size > most:
            text = f"the keys of the watch make a request of {size} bytes, and no more than {most} are sent"
            raise RequestTooLargeError(text)
        self._watches.add(watch, self._invoker.clock())

    def close(self, watch: WatchState) -> None:
        """Its consumer wants no more of it. It is cancelled on the server at once, which nobody waits for."""
        self._watches.close(watch)

    def after_take(self, watch: WatchState) -> None:
        """Its consumer took a batch."""
        self._watches.after_take(watch)

    def ask_for_mark(self, watch: WatchState) -> None:
        """Its consumer wants a progress mark."""
        self._watches.ask_for_mark(watch)

    def deadline(self, timeout: Timeout) -> float:
        """The instant that a timeout means, from now on."""
        return self._invoker.deadline(timeout, self._invoker.clock())

    def timeout_error(self, watch: WatchState, since: float) -> EtcdError:
        """Why a watch that was waited for since an instant is not on any server in time."""
        error = self._supervisor.timeout_error(since)
        self._explain(watch, error)
        return error

    async def begin_known(self, watch: WatchState, deadline: float) -> None:
        """List the keys that there were when a watch with `resync` began.

        Raises:
            EtcdError: they could not be listed.
        """
        known, revision = watch.known, watch.taken_revision
        if known is None or known.is_complete:
            return
        keys: list[bytes] = []

        def on_page(page: RangeResult) -> None:
            keys.extend(kv.key for kv in page.kvs)

        if revision > 0:
            operation = RangeOp(watch.options.keys, revision=revision, keys_only=True)
            try:
                await self._list(operation, on_page, deadline)
            except CompactedError:
                keys.clear()  # too old to know: see on_compaction= of `client.watch()`
            except FutureRevisionError:
                await self._list(replace(operation, revision=0), on_page, deadline)
        if not known.is_complete:  # a resync has come in between, and knows better
            known.begin(keys)

    async def resync(self, watch: WatchState) -> None:
        """List what there is instead of the history that is gone, until it succeeds; the watch goes on from there."""
        failures = 0
        while watch.phase is Phase.LISTING:
            try:
                await self._resync_once(watch)
            except EtcdError as error:
                # A listing that takes so long that it is compacted itself begins anew, as one that failed does. So
                # does one between whose pages the store went back.
                if not error.retryable and not isinstance(error, CompactedError | FutureRevisionError):
                    self._watches.fail(watch, error)
                    return
                await asyncio.sleep(_BACKOFF.wait(failures, random.random))
                failures += 1
            except Exception as error:  # a user's policy's: it must reach whoever waits for the watch
                self._watches.fail(watch, unexpected_error(error))
                return

    async def _resync_once(self, watch: WatchState) -> None:
        since = watch.resume_revision
        changed: list[KeyValue] = []
        there: list[bytes] = []

        def on_page(page: RangeResult) -> None:
            there.extend(kv.key for kv in page.kvs)
            changed.extend(kv for kv in page.kvs if kv.mod_revision >= since)

        revision = await self._list(RangeOp(watch.options.keys), on_page, inf)
        gone = () if watch.known is None else watch.known.replace(there)
        hides_deletes = WatchFilter.NO_DELETE in watch.options.filters
        self._watches.listed(watch, difference(changed, gone, revision, hides_deletes=hides_deletes), revision)

    async def _list(self, operation: RangeOp, on_page: OnPage, deadline: float) -> int:
        """Read all pages of a range at one revision; returns the revision."""

        async def read_page(page: RangeOp, timeout: Timeout, retry: RetryMode | None) -> RangeResult:
            timeout = UNSET if deadline == inf else time_left(deadline, self._invoker.clock())
            return await self._read_page(page, timeout, retry)

        pages = ScanPages(read_page, operation, page_size=DEFAULT_PAGE_SIZE, timeout=UNSET, retry=None)
        async for page in pages:
            on_page(page)
        return pages.revision

    def _check_store(self, watch: WatchState) -> None:
        if self._check is None or self._check.done():
            checking = self._find_revision(watch.options.keys)
            self._check = start_background_task(checking, name="etcd_aio watch store")

    async def _find_revision(self, keys: KeyRange) -> None:
        """Find out how far the store is, however long it takes: by one key, which whoever watches may read."""
        try:
            found = await self._read_page(RangeOp(KeyRange(keys.key), count_only=True), None, None)
        except EtcdError:
            return  # it is tried again if the next stream raises the doubt again
        self._watches.store_is_at(found.revision)

    def _check_marks(self, stream: int) -> None:
        if self._mark_check is None or self._mark_check.done():
            checking = self._find_release(stream, self._supervisor.endpoint)
            self._mark_check = start_background_task(checking, name="etcd_aio watch release")

    async def _find_release(self, stream: int, endpoint: str) -> None:
        """Find out whether a member's marks for all can be relied on. Not knowing it loses nothing."""
        try:
            status = await self._invoker.unary(
                methods.STATUS, pb.StatusRequest(), needs_leader=False, endpoint=endpoint
            )
        except EtcdError:
            return
        release = version_tuple(status.version)
        if release >= (3, 5, 8) or (3, 4, 25) <= release < (3, 5, 0):
            self._watches.marks_are_sure(stream)

    def _renew_token(self, error: ServerError, watch: WatchState) -> bool:
        if not self._invoker.may_renew_token(error):
            return False
        self._refusals.append((watch, error))
        if self._renewal is None or self._renewal.done():
            self._renewal = start_background_task(self._renew(), name="etcd_aio watch token")
        return True

    async def _renew(self) -> None:
        """Have another token for the watches that were refused, or tell them why there is none."""
        refusals = self._refusals
        while refusals:
            watch, error = refusals[0]
            try:
                lacking = await self._lacking(error, watch.options.keys)
            except Exception as raised:  # a user's policy's: it must reach whoever waits for the watch
                lacking = unexpected_error(raised)
            if lacking is None:
                refusals.clear()
                self._watches.renewed()
                continue
            # A denied permission is about the keys of one watch; whatever else stands in the way, for all of them.
            for _ in range(1 if isinstance(lacking, PermissionDeniedError) else len(refusals)):
                watch, error = refusals.popleft()
                error.__cause__ = lacking
                self._watches.denied(watch, error)

    async def _lacking(self, error: ServerError, keys: KeyRange) -> EtcdError | None:
        """Have another token than the stream's, if that is what a watch was refused for; returns why there is none."""
        if isinstance(error, PermissionDeniedError) and not self._supervisor.has_old_token:
            try:
                # It needs the same permission, and renews the token if it has to.
                await self._read_page(RangeOp(keys, count_only=True, serializable=True), UNSET, None)
            except EtcdError as denied:
                return None if self._supervisor.has_old_token else denied
            # It is permitted: the token is no good where the stream is, though another member took it, maybe.
        if self._supervisor.has_old_token:
            return None
        return await self._supervisor.renew_token(error)

    def _explain(self, watch: WatchState, error: EtcdError) -> None:
        keys = watch.options.keys
        create = WatchCreateRequest(key=keys.key, range_end=keys.range_end, start_revision=watch.next_revision)
        self._invoker.explain(error, methods.WATCH, WatchRequest(create_request=create))

    def _outage_error(self) -> EtcdError:
        return self._supervisor.outage_error()
