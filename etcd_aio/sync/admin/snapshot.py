"""Snapshot, for blocking code.

Made by `python -m release.facade --write` from `etcd_aio.admin.snapshot`: do not edit.
"""

from etcd_aio.portal import BlockingIterator


class Snapshot(BlockingIterator[bytes]):
    """The chunks of one snapshot: `for chunk in client.maintenance.snapshot(): ...`.

    Nothing is sent before the iteration begins, and the member sends only a few MiB ahead. After the last chunk the
    snapshot is verified: the iteration ends if it is complete, and raises `SnapshotChecksumError` if it is not. Only
    one thread may iterate at a time.

    A snapshot cannot be resumed: after an error, or Ctrl-C in a step, there are no more chunks. `close()` ends it
    early, and so does dropping it.
    """

    @property
    def endpoint(self) -> str:
        """The endpoint that sends the snapshot; empty before the first chunk."""
        return self._aio.endpoint

    def close(self) -> None:
        """End the snapshot; the member stops sending. Safe to repeat."""
        self._end(self._aio.aclose)

    @property
    def received(self) -> int:
        """The number of bytes received, including the hash at the end."""
        return self._aio.received

    @property
    def size(self) -> int:
        """The number of bytes in all; 0 before the first chunk."""
        return self._aio.size

    @property
    def version(self) -> str:
        """The storage version, which is the release to restore it with.

        Empty before the first chunk, and from servers before etcd 3.6.
        """
        return self._aio.version

    @property
    def sha256(self) -> str:
        """The hash of the database, in hexadecimal; empty before the end."""
        return self._aio.sha256
