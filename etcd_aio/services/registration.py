"""Registration: the entry of a service, as `kept_entry.py` keeps it, in the format of Go's `naming/endpoints`.

An entry of another process with the same value is taken over: an earlier process with this address has left it.
"""

import logging
from typing import ClassVar, Final

from etcd_aio import KeyLike, KeyValue
from etcd_aio.base import UNSET, Timeout
from etcd_aio.calls import StoreCalls
from etcd_aio.errors import ServiceConflictError
from etcd_aio.services.endpoint_json import JSONValue, encode_entry, entry_key
from etcd_aio.services.kept_entry import DEFAULT_TTL, KeptEntry, OnConflict

logger: Final = logging.getLogger("etcd_aio.naming")


class Registration(KeptEntry):
    """The entry of one endpoint of a service: `async with client.register("svc/web", "10.0.0.1:80") as registration:`.

    Entering puts the entry, leaving deletes it, and waits for `drain` seconds in which clients notice. In between it is
    kept alive, and put again whenever its lease was lost, after an outage of any length. The block is not cancelled by
    a loss: the endpoint goes on serving.

    Attributes:
        key: the key of the entry.
        address: where the endpoint is reached.
    """

    usage: ClassVar[str] = "a registration cannot be awaited: write `async with client.register(...) as registration:`"
    _conflict = ServiceConflictError
    _logger = logger

    def __init__(
        self,
        store: StoreCalls,
        target: KeyLike,
        address: str,
        *,
        metadata: JSONValue = None,
        name: str | None = None,
        ttl: int = DEFAULT_TTL,
        on_conflict: OnConflict = "keep",
        drain: float = 0.0,
        timeout: Timeout = UNSET,
    ) -> None:
        value = encode_entry(address, metadata)
        super().__init__(
            store,
            entry_key(target, address if name is None else name),
            value,
            ttl=ttl,
            on_conflict=on_conflict,
            drain=drain,
            timeout=timeout,
        )
        self.address = address

    async def update(self, *, metadata: JSONValue, timeout: Timeout = UNSET) -> None:
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
        await self._update(encode_entry(self.address, metadata), timeout)

    def _may_replace(self, kv: KeyValue, value: bytes) -> bool:
        return kv.value == value or super()._may_replace(kv, value)
