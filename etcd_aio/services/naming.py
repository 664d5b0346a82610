"""Changes of several entries of a service at once, in one txn."""

from collections.abc import Iterable
from dataclasses import field

from etcd_aio import KeyLike, LeaseLike, TxnResult, op
from etcd_aio.base import UNSET, Timeout
from etcd_aio.calls import StoreCalls, check_store
from etcd_aio.dataclass import dataclass
from etcd_aio.errors import InvalidRequestError
from etcd_aio.services.endpoint_json import JSONValue, ServiceEndpoint, encode_entry, entry_key, target_prefix
from etcd_aio.types import shown_key


@dataclass(frozen=True, slots=True)
class NewEndpoint:
    """An endpoint to add to a service.

    Attributes:
        address: where it is reached, such as `10.0.0.1:80`.
        metadata: what it tells about itself: any value that JSON can express.
        lease: the lease to attach the entry to, or its id. Without one it stays until it is removed.
        name: the end of its key, `<target>/<name>`. Default: the address.
    """

    address: str
    metadata: JSONValue = field(default=None, hash=False)
    lease: LeaseLike | None = None
    name: str | None = None


async def update(
    store: StoreCalls,
    target: KeyLike,
    *,
    add: Iterable[str | NewEndpoint] = (),
    remove: Iterable[str | ServiceEndpoint] = (),
    timeout: Timeout = UNSET,
) -> TxnResult:
    """Add and remove entries of a service, all in one txn: those who resolve it see all changes at once.

        await naming.update(client, "svc/web", add=["10.0.0.1:80", "10.0.0.2:80"], remove=["10.0.0.9:80"])

    A process registers itself with `client.register()` instead, so that its entry ends with it.

    Args:
        store: the client.
        target: the service. The keys are `<target>/<name>`.
        add: addresses, or `NewEndpoint`s. What is there under the same key is replaced.
        remove: addresses, or endpoints that were resolved. One that is not there is passed over.
        timeout: seconds for the whole call.

    Raises:
        InvalidRequestError: nothing changes, a key is named twice, or an argument is invalid. Nothing was sent.
        TooManyOpsError: more entries than the server allows in one txn (128 by default).
        EtcdError: as every write; `maybe_applied` is True if it may have been applied.
    """
    check_store(store)
    prefix = target_prefix(target)
    changes: dict[bytes, op.Op] = {}
    for added in _several(add, "add"):
        new = NewEndpoint(added) if isinstance(added, str) else added
        if not isinstance(new, NewEndpoint):
            raise TypeError(f"add= takes addresses and NewEndpoints, got {type(new).__name__}")
        value = encode_entry(new.address, new.metadata)
        key = entry_key(target, new.address if new.name is None else new.name)
        _add(changes, key, op.put(key, value, lease=new.lease))
    for removed in _several(remove, "remove"):
        if not isinstance(removed, str | ServiceEndpoint):
            raise TypeError(f"remove= takes addresses and ServiceEndpoints, got {type(removed).__name__}")
        key = entry_key(target, removed) if isinstance(removed, str) else removed.key
        if not key.startswith(prefix):
            raise InvalidRequestError(f"{shown_key(key)} is not an entry of {shown_key(prefix)}")
        _add(changes, key, op.delete(key))
    if not changes:
        raise InvalidRequestError("nothing changes: give add= or remove=")
    return await store.do(op.txn(then=changes.values()), timeout=timeout)


def _several(items: Iterable[object], what: str) -> Iterable[object]:
    if isinstance(items, str | NewEndpoint | ServiceEndpoint):
        raise TypeError(f"{what}= takes several: write {what}=[...]")
    return items


def _add(changes: dict[bytes, op.Op], key: bytes, change: op.Op) -> None:
    if key in changes:
        raise InvalidRequestError(f"{shown_key(key)} is named twice: one txn changes a key once")
    changes[key] = change
