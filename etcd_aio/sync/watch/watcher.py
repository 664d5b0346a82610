"""Watcher and WatchBatches, for blocking code.

Made by `python -m release.facade --write` from `etcd_aio.watch.watcher`: do not edit.
"""

from typing import Self

from etcd_aio.portal import Block, BlockingIterator, BufferedIterator
from etcd_aio.types import Event, WatchBatch
from etcd_aio.watch import WatchStatistics


class Watcher(Block, BufferedIterator[Event]):
    """A watch. Entering it creates it on a server; iterating yields `Event`s, or `WatchBatch`es by `batches()`.

    It is entered and iterated over once, by one thread at a time. However it is left (by a break or an exception), it
    is cancelled on the server at once, without waiting for the answer. So is a watch that is garbage collected without
    being left, with a ResourceWarning. Ctrl-C in a step of the iteration loses no event: the next step returns it.

    Iterating raises, after everything that was received, the reason why the watch has ended, every time:

    - `CompactedError`: the next revision was compacted; `compact_revision` is the oldest that can be watched.
    - `PermissionDeniedError`: the user may not read the range.
    - `AuthenticationFailedError`: the login was refused, or `InvalidTokenError`: a new token was.
    - `StoreRolledBackError`: a backup was restored, or data wiped, so that the store is behind the delivered events.
    - `WatchCancelledError`: the server has ended the watch for another reason.
    - `NoAvailableEndpointsError`: there was no member to watch on, or no token, for `max_outage` seconds.
    - `NotSupportedByServerError`: none of the endpoints serves watches.
    - `ReplyTooLargeError`, `MalformedReplyError`: the server sent a message that cannot be received.
    - `ClientClosedError`: the client was closed.
    """

    def __enter__(self) -> Self:
        super().__enter__()
        return self

    def close(self) -> None:
        """End the watch: cancel it on the server, and forget the events that were not delivered. Safe to repeat."""
        self._end(self._aio.aclose)

    def batches(self) -> "WatchBatches":
        """Iterate over the same watch by batches, each of one or more whole revisions.

        Raises:
            ClientUsageError: single events were iterated over before, so that the rest of a batch would be lost.
        """
        return self._made("batches")

    def next_batch(self) -> WatchBatch:
        """Wait for the next batch of `batches()`.

        Raises:
            StopIteration: the watch was left.
            EtcdError: the reason why the watch has ended.
        """
        try:
            return self._run(self._aio.next_batch)
        except StopAsyncIteration:
            raise StopIteration from None

    @property
    def revision(self) -> int:
        """The last revision that was delivered completely, also after the end; 0 before a watch from now is entered.

        A new watch from `revision + 1` misses and repeats nothing.
        """
        return self._aio.revision

    def request_progress(self) -> None:
        """Request the progress of the watch. The answer comes as a batch without events, behind everything before it.

        It advances `revision`, too. It does not wait for the answer, which comes by iterating. etcd answers when no
        watch of this client is behind; the request is repeated until then, over lost connections too.

        A proxy in between may never answer. Releases of etcd before 3.4.25 and 3.5.8 can answer too early: events at or
        before that revision may follow. This watch still delivers them, but a new one from `revision + 1` would not. If
        that cannot be excluded, the batch has `may_be_early`; so has the first answer of each member, since its release
        is asked for only then.

        Raises:
            ClientUsageError: the watch is not entered.
            EtcdError: the reason why the watch has ended.
        """
        self._run(self._aio.request_progress)

    def statistics(self) -> WatchStatistics:
        """A snapshot of the counters."""
        return self._run(self._aio.statistics)


class WatchBatches(BlockingIterator[WatchBatch]):
    """A watch by batches; see `Watcher.batches`."""

    def close(self) -> None:
        """End the watch. Safe to repeat."""
        self._end(self._aio.aclose)
