"""Registration, for blocking code.

Made by `python -m release.facade --write` from `etcd_aio.services.registration`: do not edit.
"""

from typing import Self

from etcd_aio.arguments import KeyLike
from etcd_aio.base import UNSET, Timeout
from etcd_aio.errors import EtcdError
from etcd_aio.portal import Block
from etcd_aio.services import JSONValue, OnConflict
from etcd_aio.services import Registration as AsyncRegistration
from etcd_aio.sync.calls.store_calls import StoreCalls


class Registration(Block):
    """The entry of one endpoint of a service: `with client.register("svc/web", "10.0.0.1:80") as registration:`.

    Entering puts the entry, leaving deletes it, and waits for `drain` seconds in which clients notice. In between it is
    kept alive, and put again whenever its lease was lost, after an outage of any length. A loss does not end the block:
    the endpoint goes on serving.
    """

    def __init__(
        self,
        store: StoreCalls,
        target: KeyLike,
        address: str,
        *,
        metadata: JSONValue = None,
        name: str | None = None,
        ttl: int = 10,
        on_conflict: OnConflict = "keep",
        drain: float = 0.0,
        timeout: Timeout = UNSET,
    ) -> None:
        self._construct(
            AsyncRegistration,
            store,
            target,
            address,
            metadata=metadata,
            name=name,
            ttl=ttl,
            on_conflict=on_conflict,
            drain=drain,
            timeout=timeout,
        )

    def __enter__(self) -> Self:
        super().__enter__()
        return self

    def update(self, *, metadata: JSONValue, timeout: Timeout = UNSET) -> None:
        """Change the metadata of the entry. It is applied once, and in the order of the calls.

        If the entry is not there now, it gets the new metadata when it is put again, and this returns at once.

        Args:
            metadata: any value that JSON can express.
            timeout: seconds for the call.

        Raises:
            InvalidRequestError: JSON cannot express the metadata. Nothing was sent.
            ClientUsageError: the block was not entered, or was left.
            ServiceConflictError: the entry of another process is there by now.
            EtcdError: as every write. The entry gets the metadata when it is put the next time, if not now.
        """
        self._run(self._aio.update, metadata=metadata, timeout=timeout)

    @property
    def address(self) -> str:
        """Where the endpoint is reached."""
        return self._aio.address

    def close(self) -> None:
        """Delete the entry, within two seconds, and end the block. Leaving does this. Safe to repeat.

        If etcd does not answer in that time, the entry ends with its TTL. Closing the client does this too, within half
        a second.

        Ctrl-C: the entry is deleted in the background.
        """
        self._end(self._aio.aclose)

    @property
    def is_registered(self) -> bool:
        """Whether the entry is there, as far as this process can know. Thread-safe.

        It looks at the clock, so it is right at once when the process or the machine was stopped, and it turns False
        before etcd deletes the key. A membership also notices when another client deletes or replaces the key; a
        registration does not.
        """
        return self._aio.is_registered

    @property
    def error(self) -> EtcdError | None:
        """Why the entry is not there now: `LeaseLostError`, the error of a conflict, or what etcd has answered last."""
        return self._aio.error

    @property
    def revision(self) -> int:
        """The revision of the last put of the entry; 0 if there was none."""
        return self._aio.revision

    def lost(self, *, timeout: float | None = None) -> EtcdError | None:
        """Wait until the entry is lost. It is put again without any help; this is for those who want to know.

        Args:
            timeout: seconds to wait; 0 looks once. Default: None, no limit.

        Returns:
            Why it was lost, or why it is not there; None if the block was left.

        Raises:
            EtcdTimeoutError: it was not lost in time.
            ClientUsageError: the block was not entered.

        Ctrl-C changes nothing.
        """
        return self._run(self._aio.lost, timeout=timeout)

    def wait_registered(self, *, timeout: float | None = None) -> None:
        """Wait until the entry is there.

        Args:
            timeout: seconds to wait. Default: None, no limit.

        Raises:
            EtcdTimeoutError: it was not there in time.
            ClientUsageError: the block was not entered, or was left.

        Ctrl-C changes nothing.
        """
        self._run(self._aio.wait_registered, timeout=timeout)

    @property
    def key(self) -> bytes:
        """The key of the entry."""
        return self._aio.key
