"""etcd_aio.sync: the same client for code that blocks.

    with Client("http://m1:2379,http://m2:2379,http://m3:2379") as client:
        client.put("greeting", "hello")
        kv = client.get("greeting")

Each class here stands for the asyncio class of the same name, and has its methods; `etcd_aio.sync.recipes` stands for
`etcd_aio.recipes`, and so on. Whatever does not wait is used as it is, from `etcd_aio`: results, operations, `Compare`,
`TLS`, errors.

Made by `python -m release.facade --write`: do not edit.
"""

from typing import TYPE_CHECKING

from etcd_aio.exports import late_names
from etcd_aio.sync import _facades

if TYPE_CHECKING:
    from etcd_aio.sync.calls.writer import Writer as Writer
    from etcd_aio.sync.client import Client as Client
    from etcd_aio.sync.kv.scan import Scan as Scan
    from etcd_aio.sync.kv.txn import Txn as Txn
    from etcd_aio.sync.lease.calls import Leases as Leases
    from etcd_aio.sync.lease.lease import Lease as Lease
    from etcd_aio.sync.store import Store as Store
    from etcd_aio.sync.watch.watcher import Watcher as Watcher
else:
    __getattr__, __dir__, __all__ = late_names(__name__)

_facades.register_all()
