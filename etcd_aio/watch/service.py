"""WatchService: the watches that share a stream, its supervisor, and the calls that they need besides.

What follows from a message of the server is decided by `resuming_stream.py`, which asks for the background tasks here.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine
from dataclasses import replace
from functools import partial
from math import inf
from typing import Final, TypeAlias

from etcd_aio import methods, pb
from etcd_aio.base.aio import repeat_unanswered, start_background_task
from etcd_aio.base.call_options import UNSET, RetryMode, Timeout
from etcd_aio.base.deadline import time_left
from etcd_aio.base.pauses import STEADY, Pauses
from etcd_aio.base.unexpected import as_etcd_error
from etcd_aio.error_handler import Invoker
from etcd_aio.errors import (
    CompactedError,
    EtcdError,
    FutureRevisionError,
    PermissionDeniedError,
    RequestTooLargeError,
    ServerError,
)
from etcd_aio.kv import DEFAULT_PAGE_SIZE, RangeOp, ReadPage, ScanPages
from etcd_aio.types import KeyRange, KeyValue, RangeResult, WatchFilter, version_tuple
from etcd_aio.watch.compaction_resync import difference
from etcd_aio.watch.progress import ProgressRequests
from etcd_aio.watch.resuming_stream import WatchStream
from etcd_aio.watch.state import Phase, WatchState

MAX_REQUEST_BYTES: Final = 512 * 1024
"""The size that every etcd accepts, whatever its `--max-request-bytes`: it adds as much to that. etcd refuses a larger
request by ending the stream, with all watches on it."""

_FRAME_BYTES: Final = 64  # of a creation, at most, besides its keys


OnPage: TypeAlias = Callable[[RangeResult], None]


class WatchService:
    """The watches of a client that share a stream. Constructing it sends nothing.

    Args:
        invoker: runs calls and supervises the stream.
        read_page: reads a page of a range.
        stream: the name that users gave the stream; "" for the common one.
    """

    def __init__(self, invoker: Invoker, read_page: ReadPage, stream: str = "") -> None:
        self._invoker = invoker
        self._read_page = read_page
        self._stream = WatchStream(self, invoker.observers.watch_advanced, invoker.client)
        self._supervisor = invoker.supervise(
            methods.WATCH, self._stream, f"watch {stream}".rstrip(), make_decoder=self._stream.make_decoder
        )
        # Watchers call these directly.
        self.clock = invoker.clock
        self.close = self._stream.close
        self.resume = self._stream.resume
        self.request_progress = self._stream.request_progress
        self._refusals: deque[tuple[WatchState, ServerError]] = deque()  # that the renewal of the token is about
        # By their subjects. The tasks end by themselves, with the client at the latest.
        self._tasks: dict[WatchState | str, asyncio.Task[None]] = {}

    # Calls of watchers.

    def add(self, watch: WatchState) -> None:
        """Add a new watch.

        Raises:
            ClientUsageError: the client belongs to another loop or process.
            RequestTooLargeError: some servers would refuse it, which would end all watches.
        """
        size = _FRAME_BYTES + len(watch.options.keys.key) + len(watch.options.keys.range_end)
        most = min(MAX_REQUEST_BYTES, self._invoker.max_send_bytes)
        if size > most:
            text = f"the keys of the watch make a request of {size} bytes, but at most {most} can be sent"
            raise RequestTooLargeError(text)
        self._stream.add(watch, self._invoker.clock())

    def deadline(self, timeout: Timeout) -> float:
        """The instant at which a timeout ends that begins now."""
        return self._invoker.deadline(timeout, self._invoker.clock())

    def timeout_error(self, watch: WatchState, since: float) -> EtcdError:
        """Return the error of a watch that was not created on any server in time, after a wait since then."""
        error = self._supervisor.timeout_error(since)
        self.explain(watch, error)
        return error

    async def list_first_keys(self, watch: WatchState, deadline: float) -> None:
        """List the keys that existed when a watch with `resync` began.

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
                keys.clear()  # unknown: see on_compaction= of `client.watch()`
            except FutureRevisionError:
                await self._list(replace(operation, revision=0), on_page, deadline)
        if not known.is_complete:  # a resync meanwhile has newer keys
            known.begin(keys)

    # Calls of the stream: see `WatchStreamOwner`.

    def wake(self) -> None:
        self._supervisor.wake()

    def call_soon(self, work: Callable[[], None]) -> None:
        asyncio.get_running_loop().call_soon(work)

    def outage_error(self) -> EtcdError:
        return self._supervisor.outage_error()

    def explain(self, watch: WatchState, error: EtcdError) -> None:
        keys = watch.options.keys
        create = pb.WatchCreateRequest(key=keys.key, range_end=keys.range_end, start_revision=watch.next_revision)
        self._invoker.explain(error, methods.WATCH, pb.WatchRequest(create_request=create))

    def start_listing(self, watch: WatchState) -> None:
        self._start(watch, lambda: self._resync(watch), "resync")

    def stop_listing(self, watch: WatchState) -> None:
        listing = self._tasks.pop(watch, None)
        if listing is not None and listing is not asyncio.current_task():
            listing.cancel()

    def check_store(self, watch: WatchState) -> None:
        self._start("store", lambda: self._find_revision(watch.options.keys), "store")

    def check_progress(self, progress: ProgressRequests) -> None:
        endpoint = self._supervisor.endpoint
        self._start("release", lambda: self._find_release(progress, endpoint), "release")

    def renew_token(self, error: ServerError, watch: WatchState) -> bool:
        if not self._invoker.may_renew_token(error):
            return False
        self._refusals.append((watch, error))
        self._start("token", self._renew, "token")
        return True

    # Background tasks.

    def _start(self, subject: WatchState | str, work: Callable[[], Coroutine[object, object, None]], name: str) -> None:
        """Start a task, unless one about the same subject runs."""
        running = self._tasks.get(subject)
        if running is None or running.done():
            self._tasks[subject] = task = start_background_task(work(), name=f"etcd_aio watch {name}")
            task.add_done_callback(partial(self._forget, subject))

    def _forget(self, subject: WatchState | str, task: "asyncio.Task[None]") -> None:
        if self._tasks.get(subject) is task:
            del self._tasks[subject]

    async def _resync(self, watch: WatchState) -> None:
        """List the keys until that succeeds; the watch goes on from there."""
        pauses = Pauses(STEADY)
        while watch.phase is Phase.LISTING:
            try:
                await self._resync_once(watch)
            except EtcdError as error:
                # A listing starts over if it took so long that its own revision was compacted, or if the store went
                # back between two pages.
                if not error.retryable and not isinstance(error, CompactedError | FutureRevisionError):
                    self._stream.fail(watch, error)
                    return
                await pauses.wait()
            except Exception as error:  # of the user's policy: the consumer of the watch must see it
                self._stream.fail(watch, as_etcd_error(error))
                return

    async def _resync_once(self, watch: WatchState) -> None:
        since = watch.resume_revision
        changed: list[KeyValue] = []
        keys: list[bytes] = []

        def on_page(page: RangeResult) -> None:
            keys.extend(kv.key for kv in page.kvs)
            changed.extend(kv for kv in page.kvs if kv.mod_revision >= since)

        revision = await self._list(RangeOp(watch.options.keys), on_page, inf)
        gone = () if watch.known is None else watch.known.replace(keys)
        hides_deletes = WatchFilter.NO_DELETE in watch.options.filters
        self._stream.listed(watch, difference(changed, gone, revision, hides_deletes=hides_deletes), revision)

    async def _list(self, operation: RangeOp, on_page: OnPage, deadline: float) -> int:
        """Read all pages of a range at one revision; returns the revision."""

        async def read_page(operation: RangeOp, *, timeout: Timeout, retry: RetryMode | None) -> RangeResult:
            timeout = UNSET if deadline == inf else time_left(deadline, self._invoker.clock())
            return await self._read_page(operation, timeout=timeout, retry=retry)

        pages = ScanPages(read_page, operation, page_size=DEFAULT_PAGE_SIZE, timeout=UNSET, retry=None)
        async for page in pages:
            on_page(page)
        return pages.revision

    async def _find_revision(self, keys: KeyRange) -> None:
        try:
            operation = RangeOp(KeyRange(keys.key), count_only=True)
            result = await repeat_unanswered(lambda: self._read_page(operation, timeout=None, retry=None))
        except EtcdError:
            return  # the next stream whose member is behind starts another check
        if self._stream.store_is_at(result.revision):
            self._invoker.doubts.tell()

    async def _find_release(self, progress: ProgressRequests, endpoint: str) -> None:
        try:
            status = await self._invoker.unary(
                methods.STATUS, pb.StatusRequest(), needs_leader=False, endpoint=endpoint
            )
        except EtcdError:
            return  # unknown counts as unreliable, which loses nothing
        release = version_tuple(status.version)
        progress.is_reliable = release >= (3, 5, 8) or (3, 4, 25) <= release < (3, 5, 0)

    async def _renew(self) -> None:
        """Get another token for the watches that were refused, or end them with the reason why there is none."""
        refusals = self._refusals
        while refusals:
            watch, error = refusals[0]
            try:
                reason = await self._get_token(error, watch.options.keys)
            except Exception as raised:  # of the user's policy: the consumer of the watch must see it
                reason = as_etcd_error(raised)
            if reason is None:
                refusals.clear()
                self._stream.renewed()
                continue
            # A denied permission is about the keys of one watch; any other reason is true for all of them.
            for _ in range(1 if isinstance(reason, PermissionDeniedError) else len(refusals)):
                watch, error = refusals.popleft()
                error.__cause__ = reason
                self._stream.denied(watch, error)

    async def _get_token(self, error: ServerError, keys: KeyRange) -> EtcdError | None:
        """Get another token than the stream's, if a watch was refused for that; returns why there is none."""
        if isinstance(error, PermissionDeniedError) and not self._supervisor.has_old_token:
            try:
                # This read needs the same permission, and renews the token if it has to.
                await self._read_page(RangeOp(keys, count_only=True, serializable=True), timeout=UNSET, retry=None)
            except EtcdError as denied:
                return None if self._supervisor.has_old_token else denied
            # Permitted: perhaps another member accepted the token, which the stream's member does not.
        if self._supervisor.has_old_token:
            return None
        return await self._supervisor.renew_token(error)
