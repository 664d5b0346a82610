"""Keys and values: get, put, range, scan, delete, txn, compact."""

from etcd_aio.kv.calls import KV
from etcd_aio.kv.compare import Compare, Key
from etcd_aio.kv.operations import DeleteOp, GetOp, Op, PutOp, RangeOp, TxnOp
from etcd_aio.kv.scan import DEFAULT_PAGE_SIZE, ReadPage, Scan, ScanPages
from etcd_aio.kv.txn import Txn

__all__ = [
    "DEFAULT_PAGE_SIZE",
    "KV",
    "Compare",
    "DeleteOp",
    "GetOp",
    "Key",
    "Op",
    "PutOp",
    "RangeOp",
    "ReadPage",
    "Scan",
    "ScanPages",
    "Txn",
    "TxnOp",
]
