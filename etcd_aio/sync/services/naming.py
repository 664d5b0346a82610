"""update(), for blocking code.

Made by `python -m release.facade --write` from `etcd_aio.services.naming`: do not edit.
"""

from collections.abc import Iterable

from etcd_aio.arguments import KeyLike
from etcd_aio.base import UNSET, Timeout
from etcd_aio.portal import facade_of_store, unwrap
from etcd_aio.services import NewEndpoint, ServiceEndpoint
from etcd_aio.services.naming import update as async_update
from etcd_aio.sync.calls.store_calls import StoreCalls
from etcd_aio.types import TxnResult


def update(
    store: StoreCalls,
    target: KeyLike,
    *,
    add: Iterable[str | NewEndpoint] = (),
    remove: Iterable[str | ServiceEndpoint] = (),
    timeout: Timeout = UNSET,
) -> TxnResult:
    """Add and remove entries of a service, all in one txn: those who resolve it see all changes at once.

        naming.update(client, "svc/web", add=["10.0.0.1:80", "10.0.0.2:80"], remove=["10.0.0.9:80"])

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
    return facade_of_store(store)._run(async_update, unwrap(store), target, add=add, remove=remove, timeout=timeout)
