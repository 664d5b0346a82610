"""Writes the keys before a run and deletes them afterwards, through etcd's HTTP gateway.

etcd_aio writes the histories, because a hundred thousand puts through the gateway would take a minute.
"""

import asyncio
import base64
import http.client
import json
from collections.abc import Sequence
from urllib.parse import urlsplit

from benchmarks import workload
from etcd_aio import Client, op

_TIMEOUT = 10.0
_WRITERS = 64


class StoreError(Exception):
    """The cluster cannot be used."""


def server_version(endpoint: str) -> str:
    """The etcd version of one member."""
    return str(_ask(endpoint, "GET", "/version", None)["etcdserver"])


def fill(endpoint: str, prefix: str) -> None:
    """Store every key that the cases read."""
    put_all(endpoint, workload.stored_keys(prefix), workload.VALUE)


def put_all(endpoint: str, keys: Sequence[str], value: bytes) -> None:
    """Store one value under many keys."""
    # One transaction holds at most 128 operations (etcd's --max-txn-ops default).
    for start in range(0, len(keys), 128):
        puts = [{"requestPut": _pair(key, value)} for key in keys[start : start + 128]]
        _ask(endpoint, "POST", "/v3/kv/txn", {"success": puts})


async def write_history(endpoint: str, keys: Sequence[str], value: bytes, per_txn: int) -> int:
    """Put one value under all keys in any order, `per_txn` at each revision. Returns the first revision.

    The keys of one transaction must differ.
    """
    txns = [keys[start : start + per_txn] for start in range(0, len(keys), per_txn)]

    async def write(share: Sequence[Sequence[str]]) -> int:
        answers = [await client.txn().then(*(op.put(key, value) for key in txn)).commit() for txn in share]
        return answers[0].revision

    async with Client(endpoint, timeout=_TIMEOUT) as client:
        return min(await asyncio.gather(*(write(txns[worker::_WRITERS]) for worker in range(_WRITERS))))


def clear(endpoint: str, prefix: str) -> None:
    """Delete every key of this run."""
    end = prefix[:-1] + chr(ord(prefix[-1]) + 1)
    _ask(endpoint, "POST", "/v3/kv/deleterange", {"key": _base64(prefix.encode()), "range_end": _base64(end.encode())})


def check_plain(endpoints: Sequence[str]) -> None:
    """Check that the endpoints are plain TCP endpoints with a port, which every client accepts.

    Raises:
        StoreError: one of them is not.
    """
    for endpoint in endpoints:
        parts = urlsplit(endpoint)
        if parts.scheme != "http" or parts.port is None:
            raise StoreError(f"endpoints are http://host:port here, not {endpoint}")


def _pair(key: str, value: bytes) -> dict[str, str]:
    return {"key": _base64(key.encode()), "value": _base64(value)}


def _base64(raw: bytes) -> str:
    return base64.b64encode(raw).decode()


def _ask(endpoint: str, method: str, path: str, body: object) -> dict[str, object]:
    parts = urlsplit(endpoint)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=_TIMEOUT)
    try:
        connection.request(method, path, None if body is None else json.dumps(body))
        reply = connection.getresponse()
        text = reply.read()
    except (OSError, http.client.HTTPException) as error:
        raise StoreError(f"{endpoint}{path}: {error}") from error
    finally:
        connection.close()
    if reply.status != 200:
        raise StoreError(f"{endpoint}{path}: status {reply.status}: {text[:200].decode(errors='replace')}")
    answer = json.loads(text)
    if not isinstance(answer, dict):
        raise StoreError(f"{endpoint}{path}: not understood")
    return answer
