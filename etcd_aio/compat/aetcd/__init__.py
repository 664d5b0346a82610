"""The API of aetcd 1.0 on etcd_aio: asyncio, keys and values in bytes, no TLS.

Different on purpose: no call waits without a limit (30 s where the client has no `timeout`); calls and watches survive
a lost connection, another leader and an expired token, and a watch ends only after 10 s without a server; a lock leaves
no lease behind when it is not acquired. There is no gRPC: `rpc` has the names that applications use, without messages
and stubs.
"""

from typing import TYPE_CHECKING

from etcd_aio import compat
from etcd_aio.exports import late_names

if TYPE_CHECKING:
    from etcd_aio.compat.aetcd import exceptions as exceptions
    from etcd_aio.compat.aetcd import leases as leases
    from etcd_aio.compat.aetcd import locks as locks
    from etcd_aio.compat.aetcd import members as members
    from etcd_aio.compat.aetcd import rpc as rpc
    from etcd_aio.compat.aetcd import rtypes as rtypes
    from etcd_aio.compat.aetcd import transactions as transactions
    from etcd_aio.compat.aetcd import utils as utils
    from etcd_aio.compat.aetcd import watcher as watcher
    from etcd_aio.compat.aetcd.client import Alarm as Alarm
    from etcd_aio.compat.aetcd.client import Client as Client
    from etcd_aio.compat.aetcd.client import Status as Status
    from etcd_aio.compat.aetcd.exceptions import ClientError as ClientError
    from etcd_aio.compat.aetcd.exceptions import ConnectionFailedError as ConnectionFailedError
    from etcd_aio.compat.aetcd.exceptions import ConnectionTimeoutError as ConnectionTimeoutError
    from etcd_aio.compat.aetcd.exceptions import DuplicateLeaseError as DuplicateLeaseError
    from etcd_aio.compat.aetcd.exceptions import InternalError as InternalError
    from etcd_aio.compat.aetcd.exceptions import InvalidArgumentError as InvalidArgumentError
    from etcd_aio.compat.aetcd.exceptions import PreconditionFailedError as PreconditionFailedError
    from etcd_aio.compat.aetcd.exceptions import RevisionCompactedError as RevisionCompactedError
    from etcd_aio.compat.aetcd.exceptions import UnauthenticatedError as UnauthenticatedError
    from etcd_aio.compat.aetcd.exceptions import WatchTimeoutError as WatchTimeoutError
    from etcd_aio.compat.aetcd.leases import Lease as Lease
    from etcd_aio.compat.aetcd.locks import Lock as Lock
    from etcd_aio.compat.aetcd.members import Member as Member
    from etcd_aio.compat.aetcd.rtypes import Delete as Delete
    from etcd_aio.compat.aetcd.rtypes import DeleteRange as DeleteRange
    from etcd_aio.compat.aetcd.rtypes import Event as Event
    from etcd_aio.compat.aetcd.rtypes import EventKind as EventKind
    from etcd_aio.compat.aetcd.rtypes import Get as Get
    from etcd_aio.compat.aetcd.rtypes import GetRange as GetRange
    from etcd_aio.compat.aetcd.rtypes import KeyValue as KeyValue
    from etcd_aio.compat.aetcd.rtypes import Put as Put
    from etcd_aio.compat.aetcd.rtypes import ResponseHeader as ResponseHeader
    from etcd_aio.compat.aetcd.rtypes import Watch as Watch
    from etcd_aio.compat.aetcd.transactions import Transactions as Transactions
    from etcd_aio.compat.aetcd.watcher import Watcher as Watcher
    from etcd_aio.compat.aetcd.watcher import WatcherCallback as WatcherCallback
else:
    __getattr__, __dir__, __all__ = late_names(__name__)


def install() -> None:
    """Let `import aetcd` find this package: `etcd_aio.compat.install("aetcd")`."""
    compat.install("aetcd")
