"""Keys and values: operations, txns and scans."""

from typing import TYPE_CHECKING

from etcd_aio.exports import late_names

if TYPE_CHECKING:
    from etcd_aio.kv.compare import Compare as Compare
    from etcd_aio.kv.compare import Key as Key
    from etcd_aio.kv.limits import DEFAULT_PAGE_SIZE as DEFAULT_PAGE_SIZE
    from etcd_aio.kv.op import checked_put as checked_put
    from etcd_aio.kv.operations import DeleteOp as DeleteOp
    from etcd_aio.kv.operations import GetOp as GetOp
    from etcd_aio.kv.operations import KVOperation as KVOperation
    from etcd_aio.kv.operations import Op as Op
    from etcd_aio.kv.operations import PutOp as PutOp
    from etcd_aio.kv.operations import RangeOp as RangeOp
    from etcd_aio.kv.operations import TxnOp as TxnOp
    from etcd_aio.kv.scan import ChunkReader as ChunkReader
    from etcd_aio.kv.scan import RangeStreamReader as RangeStreamReader
    from etcd_aio.kv.scan import ReadPage as ReadPage
    from etcd_aio.kv.scan import Scan as Scan
    from etcd_aio.kv.scan import ScanPages as ScanPages
    from etcd_aio.kv.txn import Txn as Txn
    from etcd_aio.kv.update import Update as Update
else:
    __getattr__, __dir__, __all__ = late_names(__name__)
