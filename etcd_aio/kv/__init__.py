"""Keys and values: get, put, range, scan, delete, txn, compact."""

from etcd_aio.kv.calls import KV as KV
from etcd_aio.kv.calls import KVCalls as KVCalls
from etcd_aio.kv.compare import Compare as Compare
from etcd_aio.kv.compare import Key as Key
from etcd_aio.kv.operations import DeleteOp as DeleteOp
from etcd_aio.kv.operations import GetOp as GetOp
from etcd_aio.kv.operations import Op as Op
from etcd_aio.kv.operations import PutOp as PutOp
from etcd_aio.kv.operations import RangeOp as RangeOp
from etcd_aio.kv.operations import TxnOp as TxnOp
from etcd_aio.kv.scan import DEFAULT_PAGE_SIZE as DEFAULT_PAGE_SIZE
from etcd_aio.kv.scan import ChunkReader as ChunkReader
from etcd_aio.kv.scan import ReadPage as ReadPage
from etcd_aio.kv.scan import Scan as Scan
from etcd_aio.kv.scan import ScanPages as ScanPages
from etcd_aio.kv.txn import Txn as Txn
