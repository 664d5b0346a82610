"""Values that the client returns, and the names of its transactions."""

from collections.abc import Callable, Iterable, Iterator
from typing import TypeAlias

from etcd_aio import Header, KeyValue
from etcd_aio.compat.etcd3 import transactions
from etcd_aio.compat.etcd3.members import Member


class Transactions:
    """The conditions and operations of a transaction: `client.transactions`."""

    value = transactions.Value
    version = transactions.Version
    create = transactions.Create
    mod = transactions.Mod
    put = transactions.Put
    get = transactions.Get
    delete = transactions.Delete
    txn = transactions.Txn


class KVMetadata:
    """A key without its value, and the header of the response that it came with."""

    def __init__(self, keyvalue: KeyValue, header: Header) -> None:
        self.key = keyvalue.key
        self.create_revision = keyvalue.create_revision
        self.mod_revision = keyvalue.mod_revision
        self.version = keyvalue.version
        self.lease_id = keyvalue.lease
        self.response_header = header


class Status:
    """The status of a member; `leader` is None if it knows of none."""

    def __init__(self, version: str, db_size: int, leader: Member | None, raft_index: int, raft_term: int) -> None:
        self.version = version
        self.db_size = db_size
        self.leader = leader
        self.raft_index = raft_index
        self.raft_term = raft_term


class EtcdTokenCallCredentials:
    """The token of the client, in the form that gRPC asks for. The client here renews its token by itself."""

    def __init__(self, access_token: str) -> None:
        self._access_token = access_token

    def __call__(self, context: object, callback: Callable[[tuple[tuple[str, str], ...], None], object]) -> None:
        """Give the token to the callback, as a plugin of gRPC does."""
        callback((("token", self._access_token),), None)


Value: TypeAlias = tuple[bytes, KVMetadata]
"""A value, and the key that has it."""


def values(kvs: Iterable[KeyValue], header: Header) -> Iterator[Value]:
    """The values of key-values, each with its metadata."""
    return ((kv.value, KVMetadata(kv, header)) for kv in kvs)
