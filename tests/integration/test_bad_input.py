"""What cannot be right is refused here: with a clear error, before anything is sent, and without a trace.

A proxy before a real server counts the bytes. The tables say what is given, which error comes and what it must say.
"""

import asyncio
import inspect
import math
import ssl
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import pytest

from etcd_aio import Client, ConfigError, InvalidRequestError, Key, op
from etcd_aio.errors import EmptyKeyError, LeaseProvidedError, RequestTooLargeError, ValueProvidedError
from etcd_aio.testing import EtcdServer, FaultProxy, FaultProxyStatistics

pytestmark = [pytest.mark.anyio, pytest.mark.cluster]

Call: TypeAlias = Callable[[Any], object]
"""What a user might write. The client is Any: half of this no type checker would let pass."""

SECRET = "c4n4ry"


@dataclass(frozen=True)
class Row:
    """One mistake: what is written, the class that comes, and a piece of its text."""

    call: Call
    error: type[Exception]
    says: str


ANYTHING: Any = op
"""The operations as an untyped caller sees them."""

KEYS: dict[str, Row] = {
    "get of an empty key": Row(lambda c: c.get(""), EmptyKeyError, "key is empty"),
    "get of no bytes": Row(lambda c: c.get(b""), EmptyKeyError, "key is empty"),
    "put of an empty key": Row(lambda c: c.put("", SECRET), EmptyKeyError, "key is empty"),
    "delete of an empty key": Row(lambda c: c.delete(""), EmptyKeyError, "key is empty"),
    "range of an empty key": Row(lambda c: c.range(""), EmptyKeyError, "key is empty"),
    "range from an empty key": Row(lambda c: c.range("", range_end="b"), EmptyKeyError, "key is empty"),
    "range to an empty key": Row(lambda c: c.range("a", range_end=""), InvalidRequestError, "range_end is empty"),
    "range to the first key": Row(lambda c: c.range("a", range_end=b"\0"), InvalidRequestError, "from_key="),
    "range without a form": Row(lambda c: c.range(), InvalidRequestError, "exactly one of"),
    "delete without a form": Row(lambda c: c.delete(), InvalidRequestError, "exactly one of"),
    "scan without a form": Row(lambda c: c.scan(), InvalidRequestError, "exactly one of"),
    "all_keys=False": Row(lambda c: c.range(all_keys=False), InvalidRequestError, "exactly one of"),
    "only an end": Row(lambda c: c.range(range_end="b"), InvalidRequestError, "needs the first key of the range"),
    "key and prefix": Row(lambda c: c.range("a", prefix="b"), InvalidRequestError, "key and prefix="),
    "key and from_key": Row(lambda c: c.delete("a", from_key="b"), InvalidRequestError, "key and from_key="),
    "key and all_keys": Row(lambda c: c.delete("a", all_keys=True), InvalidRequestError, "all_keys=True"),
    "prefix and range_end": Row(lambda c: c.range(prefix="a", range_end="b"), InvalidRequestError, "range_end="),
    "prefix and from_key": Row(
        lambda c: c.scan(prefix="a", from_key="b"), InvalidRequestError, "prefix= and from_key="
    ),
    "delete of an empty prefix": Row(lambda c: c.delete(prefix=""), InvalidRequestError, "all_keys=True"),
    "delete from the empty key": Row(lambda c: c.delete(from_key=""), InvalidRequestError, "all_keys=True"),
    "a surrogate in a key": Row(lambda c: c.get("a\ud800"), InvalidRequestError, "key has a lone surrogate"),
    "a surrogate in a prefix": Row(lambda c: c.range(prefix="\udfff"), InvalidRequestError, "prefix has a lone"),
    "a surrogate in an end": Row(lambda c: c.range("a", range_end="b\ud800"), InvalidRequestError, "range_end has"),
    "a number for a key": Row(lambda c: c.get(7), TypeError, "key must be str or bytes, got int"),
    "None for a key": Row(lambda c: c.get(None), TypeError, "key must be str or bytes, got NoneType"),
    "a list for a key": Row(lambda c: c.put(["a"], SECRET), TypeError, "key must be str or bytes, got list"),
    "a number for a prefix": Row(lambda c: c.range(prefix=7), TypeError, "prefix must be"),
    "a number for an end": Row(lambda c: c.range("a", range_end=7), TypeError, "range_end must be"),
    "a number for from_key": Row(lambda c: c.scan(from_key=7), TypeError, "from_key must be"),
}

OPTIONS: dict[str, Row] = {
    "a negative limit": Row(
        lambda c: c.range("a", limit=-1), InvalidRequestError, "limit must not be negative, got -1"
    ),
    "a limit of 2^63": Row(lambda c: c.range("a", limit=2**63), InvalidRequestError, "limit must be between"),
    "a text as limit": Row(lambda c: c.range("a", limit="1"), TypeError, "limit must be an int, got str"),
    "a float as limit": Row(lambda c: c.range("a", limit=1.0), TypeError, "limit must be an int, got float"),
    "a bool as limit": Row(lambda c: c.range("a", limit=True), TypeError, "limit must be an int, got bool"),
    "a negative revision": Row(lambda c: c.get("a", revision=-1), InvalidRequestError, "revision must not be"),
    "None as revision": Row(lambda c: c.get("a", revision=None), TypeError, "revision must be an int"),
    "a negative bound": Row(lambda c: c.range("a", min_mod_revision=-1), InvalidRequestError, "min_mod_revision"),
    "crossed mod bounds": Row(
        lambda c: c.range("a", min_mod_revision=5, max_mod_revision=4), InvalidRequestError, "min_mod_revision"
    ),
    "crossed create bounds": Row(
        lambda c: c.range("a", min_create_revision=5, max_create_revision=4), InvalidRequestError, "min_create_revision"
    ),
    "an unknown sort_by": Row(lambda c: c.range("a", sort_by="size"), InvalidRequestError, "'mod_revision'"),
    "an unknown sort_order": Row(lambda c: c.range("a", sort_order="up"), InvalidRequestError, "'descend'"),
    "a number as sort_by": Row(lambda c: c.range("a", sort_by=1), InvalidRequestError, "sort_by must be one of"),
    "page_size 0": Row(lambda c: c.scan(prefix="a", page_size=0), InvalidRequestError, "page_size"),
    "scan with a negative revision": Row(lambda c: c.scan(prefix="a", revision=-1), InvalidRequestError, "revision"),
    "compact to 0": Row(lambda c: c.compact(0), InvalidRequestError, "revision must be between 1 and"),
    "compact to a text": Row(lambda c: c.compact("5"), TypeError, "revision must be an int, got str"),
    "an unknown option of get": Row(lambda c: c.get("a", limit=1), TypeError, "limit"),
    "an unknown option of range": Row(lambda c: c.range("a", limits=1), TypeError, "limits"),
    "an unknown option of put": Row(lambda c: c.put("a", SECRET, ttl=1), TypeError, "ttl"),
    "an unknown option of delete": Row(lambda c: c.delete("a", limit=1), TypeError, "limit"),
    "an unknown option of scan": Row(lambda c: c.scan("a", limit=1), TypeError, "limit"),
    "options by position": Row(lambda c: c.range("a", "b"), TypeError, "positional"),
}

VALUES: dict[str, Row] = {
    "no value": Row(lambda c: c.put("a"), InvalidRequestError, "value is missing"),
    "None as value": Row(lambda c: c.put("a", None), InvalidRequestError, "value is missing"),
    "a number as value": Row(lambda c: c.put("a", 7), TypeError, "value must be str or bytes, got int"),
    "a dict as value": Row(lambda c: c.put("a", {SECRET: 1}), TypeError, "value must be str or bytes, got dict"),
    "a surrogate in a value": Row(lambda c: c.put("a", SECRET + "\ud800"), InvalidRequestError, "value has a lone"),
    "a value that is ignored": Row(
        lambda c: c.put("a", SECRET, ignore_value=True), ValueProvidedError, "leave value out"
    ),
    "a lease that is ignored": Row(
        lambda c: c.put("a", SECRET, lease=1, ignore_lease=True), LeaseProvidedError, "leave lease= out"
    ),
    "a text as lease": Row(lambda c: c.put("a", SECRET, lease="1"), TypeError, "lease must be a lease id"),
    "a bool as lease": Row(lambda c: c.put("a", SECRET, lease=True), TypeError, "lease must be a lease id"),
    "a lease of 2^63": Row(lambda c: c.put("a", SECRET, lease=2**63), InvalidRequestError, "lease must be between"),
}

TXNS: dict[str, Row] = {
    "when twice": Row(lambda c: c.txn().when().when(), InvalidRequestError, "when() is called twice"),
    "then twice": Row(lambda c: c.txn().then().then(), InvalidRequestError, "then() is called twice"),
    "otherwise twice": Row(lambda c: c.txn().otherwise().otherwise(), InvalidRequestError, "is called twice"),
    "when after then": Row(lambda c: c.txn().then().when(), InvalidRequestError, "when() comes before"),
    "then after otherwise": Row(lambda c: c.txn().otherwise().then(), InvalidRequestError, "then() comes before"),
    "when with a truth": Row(lambda c: c.txn().when(True), TypeError, "when() takes comparisons"),
    "when with a list": Row(lambda c: c.txn().when([Key("a").exists]), TypeError, "when() takes comparisons"),
    "when with an operation": Row(lambda c: c.txn().when(op.get("a")), TypeError, "when() takes comparisons"),
    "then with a comparison": Row(lambda c: c.txn().then(Key("a").exists), TypeError, "then() takes operations"),
    "then with a call": Row(lambda c: c.txn().then(SECRET), TypeError, "then() takes operations"),
    "and between comparisons": Row(lambda c: Key("a").exists and Key("b").exists, TypeError, "no truth value"),
    "a chained comparison": Row(lambda c: 1 < Key("a").version < 3, TypeError, "no truth value"),
    "<=": Row(lambda c: vars_of(Key("a")).version <= 3, TypeError, "etcd has no <="),
    ">=": Row(lambda c: vars_of(Key("a")).version >= 3, TypeError, "etcd has no >="),
    "a text as version": Row(lambda c: vars_of(Key("a")).version == "1", TypeError, "the operand of version"),
    "a number as value": Row(lambda c: vars_of(Key("a")).value == 1, TypeError, "the operand of value"),
    "a surrogate compared": Row(lambda c: Key("a").value == SECRET + "\ud800", InvalidRequestError, "lone surrogate"),
    "an empty key compared": Row(lambda c: Key("").exists, EmptyKeyError, "key is empty"),
    "two forms compared": Row(lambda c: Key("a", prefix="b"), InvalidRequestError, "key and prefix="),
    "an operation on an empty key": Row(lambda c: op.put("", SECRET), EmptyKeyError, "key is empty"),
    "an operation without a form": Row(lambda c: op.range(), InvalidRequestError, "exactly one of"),
    "an operation that empties the store": Row(lambda c: op.delete(prefix=""), InvalidRequestError, "all_keys=True"),
    "an operation with a timeout": Row(lambda c: ANYTHING.get("a", timeout=1), TypeError, "timeout"),
    "an operation with a retry word": Row(lambda c: ANYTHING.put("a", SECRET, retry="never"), TypeError, "retry"),
    "a nested txn of one operation": Row(lambda c: ANYTHING.txn(then=op.get("a")), TypeError, "takes several"),
}

# The layer below checks these, where a client that is not connected yet begins to connect.
LIMITS: dict[str, Row] = {
    "a value too large": Row(lambda c: c.put("a", SECRET.encode() * 2**19), RequestTooLargeError, "max_send_bytes"),
    "a key too large": Row(lambda c: c.get("a" * 2**22), RequestTooLargeError, "max_send_bytes (2097152)"),
    "a txn too large": Row(
        lambda c: c.txn().then(op.put("a", "x" * 2**20), op.put("b", "x" * 2**20)).commit(),
        RequestTooLargeError,
        "max_send_bytes",
    ),
    "a negative timeout": Row(lambda c: c.get("a", timeout=-1), InvalidRequestError, "timeout must be a number"),
    "timeout NaN": Row(lambda c: c.put("a", SECRET, timeout=math.nan), InvalidRequestError, "timeout must be a number"),
    "a text as timeout": Row(lambda c: c.get("a", timeout="1"), TypeError, "timeout must be a number"),
    "an unknown retry word": Row(lambda c: c.get("a", retry="sometimes"), InvalidRequestError, "retry must be one of"),
    "a retry word in capitals": Row(lambda c: c.put("a", SECRET, retry="Never"), InvalidRequestError, "'never'"),
    "an empty retry word": Row(lambda c: c.delete("a", retry=""), InvalidRequestError, "retry must be one of"),
    "a bool as retry": Row(lambda c: c.compact(1, retry=True), InvalidRequestError, "retry must be one of"),
    "a number as retry of a txn": Row(lambda c: c.txn().commit(retry=3), InvalidRequestError, "retry must be one of"),
    "a bad retry word of a scan": Row(
        lambda c: anext(c.scan("a", retry="no")), InvalidRequestError, "retry must be one of"
    ),
    "a text as serializable": Row(
        lambda c: c.get("a", serializable="no"), TypeError, "serializable must be True or False"
    ),
    "None as keys_only": Row(lambda c: c.get("a", keys_only=None), TypeError, "keys_only must be True or False"),
    "a text as prev_kv": Row(lambda c: c.put("a", SECRET, prev_kv="yes"), TypeError, "prev_kv must be True or False"),
    "a text as physical": Row(lambda c: c.compact(1, physical="no"), TypeError, "physical must be True or False"),
}


@pytest.fixture(autouse=True)
def no_health_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    """It would be opened a second after the connection, so bytes would be exchanged by then."""
    monkeypatch.setattr("etcd_aio.balancer.serving_monitor._NOT_BEFORE", 3600.0)


def vars_of(key: Key) -> Any:
    """A key as an untyped caller sees it."""
    return key


async def settled(proxy: FaultProxy) -> FaultProxyStatistics:
    """The byte counts after whatever was under way has arrived."""
    now = proxy.statistics()
    while True:
        await asyncio.sleep(0.5)  # the server may stand still for a moment
        before, now = now, proxy.statistics()
        if now == before:
            return now


async def run(row: Row, client: Client) -> BaseException | None:
    try:
        result = row.call(client)
        if inspect.isawaitable(result):
            await result
    except Exception as error:
        return error
    return None


def is_shown(secret: str, error: BaseException | None) -> bool:
    """Whether a log could show it: the traceback, or the `repr` of the error and of whatever led to it."""
    told = "".join(traceback.format_exception(error))
    while error is not None:
        told += repr(error)
        error = error.__cause__ or error.__context__
    return secret in told


def judge(row: Row, error: BaseException | None) -> str:
    """What is wrong with the error; empty if nothing is."""
    if error is None:
        return "it went through"
    if type(error) is not row.error:
        return f"it raised {error!r}"
    if row.says not in str(error):
        return f"it says {str(error)!r}"
    if is_shown(SECRET, error):
        return "the error shows the value"
    if getattr(error, "maybe_applied", False) or getattr(error, "attempts", ()):
        return "the error speaks of attempts"
    return ""


TABLES = {"keys": KEYS, "options": OPTIONS, "values": VALUES, "txns": TXNS, "limits": LIMITS}


@pytest.mark.parametrize("table", TABLES)
async def test_a_connected_client_sends_nothing(shared_server: EtcdServer, table: str) -> None:
    rows = TABLES[table]
    async with FaultProxy(shared_server.endpoint) as proxy, Client(proxy.endpoint) as client:
        await client.get("a")
        quiet = await settled(proxy)
        (before,) = client.statistics()
        tasks = asyncio.all_tasks()
        wrong: dict[str, str] = {}
        for what, row in rows.items():
            if problem := judge(row, await run(row, client)):
                wrong[what] = problem
            (after,) = client.statistics()
            if (after.attempts, after.in_flight) != (before.attempts, 0):
                wrong[what] = "an attempt was made"
            before = after
        assert not wrong
        assert asyncio.all_tasks() == tasks
        assert await settled(proxy) == quiet, "bytes were exchanged"
        # All this did the connection no harm, and the count of bytes is one that moves.
        assert await client.get("a") is None
        assert client.statistics()[0].connects == 1
        assert proxy.statistics().bytes_to_server > quiet.bytes_to_server


async def test_a_fresh_client_does_not_even_connect(shared_server: EtcdServer) -> None:
    async with FaultProxy(shared_server.endpoint) as proxy:
        client = Client(proxy.endpoint)
        for rows in (KEYS, OPTIONS, VALUES, TXNS):
            for what, row in rows.items():
                assert not judge(row, await run(row, client)), what
        assert client.statistics() == ()
        assert (await settled(proxy)).connections_accepted == 0
        await client.aclose()


async def test_all_keys_is_true_and_nothing_like_it(shared_server: EtcdServer) -> None:
    async with Client(shared_server.endpoint) as client:
        anything: Any = client
        with pytest.raises(TypeError, match="all_keys"):
            await anything.range(all_keys="no", count_only=True)


# The client itself.

SERVER_CONTEXT = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)

CONFIGURATIONS: dict[str, tuple[dict[str, object], str]] = {
    "no endpoints": ({"endpoints": []}, "at least one endpoint"),
    "an empty endpoint": ({"endpoints": ""}, "must not be empty"),
    "an empty one of two": ({"endpoints": "a:1,,b:2"}, "must not be empty"),
    "white space": ({"endpoints": "http://a b"}, "white space or control characters: separate endpoints by commas"),
    "a number": ({"endpoints": [2379]}, "an endpoint must be a str, not int"),
    "another scheme": ({"endpoints": "ftp://a"}, "'ftp'"),
    "etcds without from_url": ({"endpoints": "etcds://a"}, "Client.from_url"),
    "a path": ({"endpoints": "http://a/v3"}, "no path"),
    "no host": ({"endpoints": "http://:2379"}, "has no host"),
    "a port that is none": ({"endpoints": "a:http"}, "no port between"),
    "port 0": ({"endpoints": "a:0"}, "no port between"),
    "port 65536": ({"endpoints": "a:65536"}, "no port between"),
    "bare IPv6": ({"endpoints": "::1"}, "without brackets"),
    "half an IPv6": ({"endpoints": "[::1:2379"}, "unfinished"),
    "credentials": ({"endpoints": f"http://root:{SECRET}@a:2379"}, "must not carry credentials"),
    "a unix socket without a path": ({"endpoints": "unix://"}, "needs a path"),
    "timeout 0": ({"timeout": 0}, "timeout must be a number of seconds above 0 or None; got 0"),
    "a negative timeout": ({"timeout": -1.0}, "timeout must"),
    "timeout NaN": ({"timeout": math.nan}, "timeout must"),
    "a text as timeout": ({"timeout": "5"}, "timeout must"),
    "a bool as timeout": ({"timeout": True}, "timeout must"),
    "connect_timeout None": (
        {"connect_timeout": None},
        "connect_timeout must be a number of seconds above 0; got None",
    ),
    "connect_timeout 0": ({"connect_timeout": 0}, "connect_timeout must"),
    "keepalive_time 1": ({"keepalive_time": 1.0}, "at least 5 s"),
    "keepalive_timeout 0": ({"keepalive_timeout": 0}, "keepalive_timeout must"),
    "an unknown policy": ({"policy": "random"}, "policy must be one of 'round_robin'"),
    "an unknown engine": ({"engine": "grpcio"}, "engine must be one of"),
    "an unknown retry word": ({"retry": "sometimes"}, "retry must be one of 'safe', 'never', 'always'"),
    "a dict as retry_policy": ({"retry_policy": {"max_attempts": 3}}, "retry_policy must be a RetryPolicy"),
    "max_send_bytes 0": ({"max_send_bytes": 0}, "max_send_bytes must"),
    "a float as max_send_bytes": ({"max_send_bytes": 1e6}, "max_send_bytes must"),
    "max_receive_bytes -1": ({"max_receive_bytes": -1}, "max_receive_bytes must"),
    "max_receive_bytes 2^31": ({"max_receive_bytes": 2**31}, "max_receive_bytes must"),
    "tls=True": ({"tls": True}, "an ssl.SSLContext"),
    "a server's tls": ({"tls": SERVER_CONTEXT}, "a context for clients"),
}


@pytest.mark.parametrize("what", CONFIGURATIONS)
async def test_a_client_that_cannot_work_is_not_made(what: str) -> None:
    options, says = CONFIGURATIONS[what]
    anything: Any = Client
    tasks = asyncio.all_tasks()
    with pytest.raises(ConfigError) as caught:
        anything(**options)
    assert says in str(caught.value)
    assert isinstance(caught.value, ValueError)
    assert not is_shown(SECRET, caught.value)
    assert asyncio.all_tasks() == tasks


async def test_an_unknown_option_of_the_client() -> None:
    anything: Any = Client
    with pytest.raises(TypeError, match="endpoint"):
        anything(endpoint="a:1")


async def test_bad_endpoints_change_nothing(shared_server: EtcdServer) -> None:
    async with FaultProxy(shared_server.endpoint) as proxy, Client(proxy.endpoint) as client:
        await client.get("a")
        quiet = await settled(proxy)
        for bad in ([], "", "ftp://a", [proxy.endpoint, "a:0"]):
            with pytest.raises(ConfigError):
                client.set_endpoints(bad)
        assert client.endpoints == (proxy.endpoint,)
        assert await settled(proxy) == quiet
        await client.get("a")
        assert client.statistics()[0].connects == 1
