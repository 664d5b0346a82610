"""Scan and ScanPages, for blocking code.

Made by `python -m release.facade --write` from `etcd_aio.kv.scan`: do not edit.
"""

from etcd_aio.portal import BlockingIterator, BufferedIterator
from etcd_aio.types import KeyRange, KeyValue, RangeResult


class Scan(BufferedIterator[KeyValue]):
    """Every key of a range, in key order, as the store was at one revision.

        for kv in client.scan(prefix="svc/"): ...

    The first page decides the revision, and everything after it is read at this revision, so later changes are not
    seen. A watch from `revision + 1` continues without a gap.

    Keys that do not fit into the first page are streamed if a connected member supports it (etcd 3.7 and newer), else
    read page by page. A stream holds at most one chunk in memory, about as large as etcd's largest request (1.5 MB),
    and 4 MiB that the server may send ahead. Without a stream only one page is held. A page that is too large for one
    message is requested again with half as many keys; pages that fit let the number grow again. The error is raised
    only if a single key does not fit.

    If a member fails, the scan goes on after the last key, at the same revision, on another member. Iterating raises
    the same errors as `client.range()`, and `CompactedError` if the revision is compacted before the end; the next step
    then tries again from the same key. Ctrl-C in a step leaves nothing behind: the next step requests the same keys.

    Leaving a scan early is free. Its stream is closed at once by `close()`, which also ends the scan in a thread that
    still iterates, and when the scan is garbage-collected, as it is after a loop over `client.scan(...)` itself. A scan
    that is kept but not read further holds no more than described above, here and on the server.
    """

    @property
    def revision(self) -> int:
        """The revision that the scan reads; 0 before the first page has arrived."""
        return self._aio.revision

    def pages(self) -> "ScanPages":
        """This scan by whole pages instead of single keys.

        Raises:
            ClientUsageError: single keys were already taken, so the rest of a page would be lost.
        """
        return self._made("pages")

    def close(self) -> None:
        """End the scan and drop the page it holds. Safe to repeat."""
        self._end(self._aio.aclose)


class ScanPages(BlockingIterator[RangeResult]):
    """A scan by whole pages; see `Scan`.

    In each page, `count` and `more` are about the range from this page on. An empty range has one page, which is empty.
    A chunk of a stream is cut if it has more keys than a page may have; its pages have the header of the first page,
    since etcd sends none with them.
    """

    @property
    def keys(self) -> KeyRange:
        """The range."""
        return self._aio.keys

    @property
    def revision(self) -> int:
        """The revision that the scan reads; 0 before the first page has arrived."""
        return self._aio.revision

    def close(self) -> None:
        """End the scan and close its stream at once. Safe to repeat."""
        self._end(self._aio.aclose)
