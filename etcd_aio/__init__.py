"""etcd_aio: the asyncio-native client library for etcd v3.

    async with Client("http://m1:2379,http://m2:2379,http://m3:2379") as client:
        await client.put("greeting", "hello")
        kv = await client.get("greeting")

Here is what programs use every day. `etcd_aio.errors` has every exception; `etcd_aio.admin` the calls about users,
members and maintenance, with their results; `etcd_aio.testing` real servers and faults for your own tests.
"""

import logging
from typing import TYPE_CHECKING

from etcd_aio._version import __version__ as __version__
from etcd_aio.exports import late_names

if TYPE_CHECKING:
    from etcd_aio.balancer import Candidate as Candidate
    from etcd_aio.base.call_options import UNSET as UNSET
    from etcd_aio.base.call_options import RetryMode as RetryMode
    from etcd_aio.base.call_options import Timeout as Timeout
    from etcd_aio.base.key_space import KeySpace as KeySpace
    from etcd_aio.calls import Writer as Writer
    from etcd_aio.client import Client as Client
    from etcd_aio.config import TLS as TLS
    from etcd_aio.error_handler import RetryPolicy as RetryPolicy
    from etcd_aio.error_handler import RetryThrottling as RetryThrottling
    from etcd_aio.errors import ClientClosedError as ClientClosedError
    from etcd_aio.errors import ConfigError as ConfigError
    from etcd_aio.errors import ConnectionLostError as ConnectionLostError
    from etcd_aio.errors import EtcdError as EtcdError
    from etcd_aio.errors import EtcdTimeoutError as EtcdTimeoutError
    from etcd_aio.errors import InvalidRequestError as InvalidRequestError
    from etcd_aio.errors import LeadershipLostError as LeadershipLostError
    from etcd_aio.errors import LeaseLostError as LeaseLostError
    from etcd_aio.errors import LockLostError as LockLostError
    from etcd_aio.errors import LockTimeoutError as LockTimeoutError
    from etcd_aio.errors import NoAvailableEndpointsError as NoAvailableEndpointsError
    from etcd_aio.errors import OutcomeUnknownError as OutcomeUnknownError
    from etcd_aio.errors import ServerError as ServerError
    from etcd_aio.kv import Compare as Compare
    from etcd_aio.kv import Key as Key
    from etcd_aio.kv import Op as Op
    from etcd_aio.kv import Scan as Scan
    from etcd_aio.kv import Txn as Txn
    from etcd_aio.kv import op as op
    from etcd_aio.lease import Lease as Lease
    from etcd_aio.lease import Leases as Leases
    from etcd_aio.store import Store as Store
    from etcd_aio.types import CompactResult as CompactResult
    from etcd_aio.types import DeleteResult as DeleteResult
    from etcd_aio.types import Event as Event
    from etcd_aio.types import EventType as EventType
    from etcd_aio.types import Header as Header
    from etcd_aio.types import KeyLike as KeyLike
    from etcd_aio.types import KeyRange as KeyRange
    from etcd_aio.types import KeyValue as KeyValue
    from etcd_aio.types import LeaseLike as LeaseLike
    from etcd_aio.types import OnCompaction as OnCompaction
    from etcd_aio.types import Operation as Operation
    from etcd_aio.types import PutResult as PutResult
    from etcd_aio.types import RangeResult as RangeResult
    from etcd_aio.types import SortBy as SortBy
    from etcd_aio.types import SortOrder as SortOrder
    from etcd_aio.types import TxnResult as TxnResult
    from etcd_aio.types import ValueLike as ValueLike
    from etcd_aio.types import WatchBatch as WatchBatch
    from etcd_aio.types import WatchFilter as WatchFilter
    from etcd_aio.watch import Watcher as Watcher
    from etcd_aio.watch import WatchStatistics as WatchStatistics
else:
    __getattr__, __dir__, __all__ = late_names(__name__)
    __all__ += ["__version__"]

# Without a logging configuration the library is silent.
logging.getLogger("etcd_aio").addHandler(logging.NullHandler())
