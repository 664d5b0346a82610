"""Every error that a key-value call can provoke on a real server: its class, its story, and that nothing was done."""

import asyncio
import ssl
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeAlias

import pytest
import trustme

from etcd_aio import Client, EtcdError, Key, ServerError, op
from etcd_aio.errors import (
    CompactedError,
    CorruptError,
    Delivery,
    DuplicateKeyError,
    FutureRevisionError,
    KeyNotFoundError,
    LeaseNotFoundError,
    NoSpaceError,
    PermissionDeniedError,
    RequestTooLargeError,
    ResourceExhaustedError,
    StatusCode,
    TooManyOpsError,
    UserEmptyError,
)
from etcd_aio.testing import EtcdServer, ServerTLS
from etcd_aio.testing.health_probe import ask
from tests.support.auth import enable_auth

pytestmark = [pytest.mark.anyio, pytest.mark.cluster]

Call: TypeAlias = Callable[[Client, str], Awaitable[object]]

FUTURE = 10**15
NO_LEASE = 0x7EAD


def check(
    error: EtcdError,
    expected: type[ServerError],
    code: StatusCode,
    text: str,
    endpoint: str,
    *,
    maybe_applied: bool = False,
) -> None:
    """The error is of its class and tells the whole story of its one attempt."""
    assert type(error) is expected
    assert (error.code, error.message) == (code, text)
    shown = str(error)
    assert shown.startswith(f"{error.call}: {text}")
    assert error.call
    assert f"(at {endpoint} after " in shown
    assert shown.endswith("; it may have been applied)") is maybe_applied
    assert error.endpoint == endpoint
    assert error.maybe_applied is maybe_applied
    assert error.retryable is False
    (attempt,) = error.attempts
    assert (attempt.endpoint, attempt.code, attempt.delivery) == (endpoint, code, Delivery.ANSWERED)
    assert attempt.message == text
    assert attempt.seconds >= 0
    (note,) = error.__notes__
    assert note.startswith(f"attempt 1 on {endpoint}: answered after ")
    assert note.endswith(f": {text} ({code.name})")


def puts(client: Client, prefix: str, count: int) -> Awaitable[object]:
    return client.txn().then(*(op.put(f"{prefix}{number}", "") for number in range(count))).commit()


def txn(client: Client, *ops: op.Op) -> Awaitable[object]:
    return client.txn().then(*ops).commit()


FUTURE_TEXT = "etcdserver: mvcc: required revision is a future revision"
OPS_TEXT = "etcdserver: too many operations in txn request"
DUPLICATE_TEXT = "etcdserver: duplicate key given in txn request"
LEASE_TEXT = "etcdserver: requested lease not found"
KEY_TEXT = "etcdserver: key not found"
LARGE_TEXT = "etcdserver: request is too large"
WRONG, RANGE, ABSENT = StatusCode.INVALID_ARGUMENT, StatusCode.OUT_OF_RANGE, StatusCode.NOT_FOUND

ERRORS: dict[str, tuple[Call, type[ServerError], StatusCode, str]] = {
    "get of a future revision": (lambda c, p: c.get(p, revision=FUTURE), FutureRevisionError, RANGE, FUTURE_TEXT),
    "range of a future revision": (
        lambda c, p: c.range(prefix=p, revision=FUTURE, serializable=True), FutureRevisionError, RANGE, FUTURE_TEXT
    ),
    "scan of a future revision": (
        lambda c, p: anext(c.scan(prefix=p, revision=FUTURE)), FutureRevisionError, RANGE, FUTURE_TEXT
    ),
    "txn that reads a future revision": (
        lambda c, p: txn(c, op.get(p), op.get(p, revision=FUTURE)), FutureRevisionError, RANGE, FUTURE_TEXT
    ),
    "compaction of the future": (lambda c, p: c.compact(FUTURE), FutureRevisionError, RANGE, FUTURE_TEXT),
    "129 operations": (lambda c, p: puts(c, p, 129), TooManyOpsError, WRONG, OPS_TEXT),
    "129 comparisons": (
        lambda c, p: c.txn().when(*[Key(p).missing] * 129).commit(), TooManyOpsError, WRONG, OPS_TEXT
    ),
    "129 operations in a nested txn": (
        lambda c, p: txn(c, op.put(p, ""), op.txn(otherwise=[op.get(p)] * 129)), TooManyOpsError, WRONG, OPS_TEXT
    ),
    "two puts of one key": (
        lambda c, p: txn(c, op.put(p, "1"), op.put(p, "2")), DuplicateKeyError, WRONG, DUPLICATE_TEXT
    ),
    "a put and a delete of one key": (
        lambda c, p: txn(c, op.put(p + "a", ""), op.delete(prefix=p)), DuplicateKeyError, WRONG, DUPLICATE_TEXT
    ),
    "a put and a nested put of one key": (
        lambda c, p: txn(c, op.put(p, ""), op.txn(then=[op.put(p, "")])), DuplicateKeyError, WRONG, DUPLICATE_TEXT
    ),
    "put with a lease that is none": (
        lambda c, p: c.put(p, "", lease=NO_LEASE), LeaseNotFoundError, ABSENT, LEASE_TEXT
    ),
    "txn with a lease that is none": (
        lambda c, p: txn(c, op.put(p + "a", ""), op.put(p, "", lease=NO_LEASE)), LeaseNotFoundError, ABSENT, LEASE_TEXT
    ),
    "ignore_value without a key": (lambda c, p: c.put(p, ignore_value=True), KeyNotFoundError, WRONG, KEY_TEXT),
    "ignore_lease without a key": (lambda c, p: c.put(p, "", ignore_lease=True), KeyNotFoundError, WRONG, KEY_TEXT),
    "ignore_value in a txn": (
        lambda c, p: txn(c, op.put(p + "a", ""), op.put(p, ignore_value=True)), KeyNotFoundError, WRONG, KEY_TEXT
    ),
    "a request above 1.5 MiB": (lambda c, p: c.put(p, b"x" * 1_600_000), RequestTooLargeError, WRONG, LARGE_TEXT),
}  # fmt: skip


@pytest.mark.parametrize("what", ERRORS)
async def test_a_refused_request(client: Client, shared_server: EtcdServer, prefix: str, what: str) -> None:
    call, expected, code, text = ERRORS[what]
    before = (await client.range(prefix=prefix)).revision
    with pytest.raises(expected) as caught:
        await call(client, prefix)
    check(caught.value, expected, code, text, shared_server.endpoint)
    after = await client.range(prefix=prefix)
    assert (after.count, after.revision) == (0, before), "a refused request has done nothing"
    assert client.statistics()[0].connects == 1, "an answer, even a bad one, is no reason to hang up"


async def test_the_builtins_that_fit(client: Client, prefix: str) -> None:
    with pytest.raises(KeyError) as key_error:
        await client.put(prefix, ignore_value=True)
    assert f"put {prefix!r}: {KEY_TEXT} (at " in str(key_error.value), "a KeyError would quote its text"
    with pytest.raises(LookupError):
        await client.put(prefix, "", lease=NO_LEASE)
    with pytest.raises(ValueError, match="duplicate key"):
        await txn(client, op.put(prefix, ""), op.put(prefix, ""))


async def test_compacted(client: Client, shared_server: EtcdServer, prefix: str) -> None:
    old = (await client.put(prefix, "1")).revision
    kept = (await client.put(prefix, "2")).revision
    await client.compact(kept)
    calls: list[Awaitable[object]] = [
        client.get(prefix, revision=old),
        client.range(prefix=prefix, revision=old, serializable=True),
        anext(client.scan(prefix=prefix, revision=old)),
        txn(client, op.get(prefix, revision=old)),
        txn(client, op.get(prefix + "a"), op.get(prefix, revision=old)),
        client.compact(old),
        client.compact(kept),
    ]
    text = "etcdserver: mvcc: required revision has been compacted"
    for call in calls:
        with pytest.raises(CompactedError) as caught:
            await call
        check(caught.value, CompactedError, StatusCode.OUT_OF_RANGE, text, shared_server.endpoint)
    assert (await client.range(prefix=prefix)).revision == kept


async def test_a_request_that_grpc_itself_refuses(shared_server: EtcdServer, prefix: str) -> None:
    """Above 2 MiB etcd does not even read the request, and the answer is not etcd's own."""
    async with Client(shared_server.endpoint, max_send_bytes=16 * 2**20) as client:
        with pytest.raises(ResourceExhaustedError) as caught:
            await client.put(prefix, b"x" * 3 * 2**20)
        error = caught.value
        assert type(error) is ResourceExhaustedError
        assert error.message.startswith("grpc: received message larger than max (")
        assert error.endpoint == shared_server.endpoint
        assert len(error.attempts) == 1
        assert await client.get(prefix) is None
        assert client.statistics()[0].connects == 1


async def test_too_many_at_once_are_told_apart(client: Client, prefix: str) -> None:
    """Errors and answers of calls that share a connection do not get mixed up."""

    async def one(number: int) -> str:
        key = f"{prefix}{number:03}"
        try:
            match number % 4:
                case 0:
                    await client.get(key, revision=FUTURE)
                case 1:
                    await client.put(key, "", lease=NO_LEASE)
                case 2:
                    await client.put(key, ignore_value=True)
                case _:
                    await client.put(key, "")
        except ServerError as error:
            return type(error).__name__
        return "put"

    answers = await asyncio.gather(*(one(number) for number in range(200)))
    assert answers == ["FutureRevisionError", "LeaseNotFoundError", "KeyNotFoundError", "put"] * 50
    assert (await client.range(prefix=prefix, count_only=True)).count == 50


async def test_no_space() -> None:
    async with EtcdServer(flags=["--quota-backend-bytes=1000000"]) as server, Client(server.endpoint) as client:
        text = "etcdserver: mvcc: database space exceeded"
        value = b"x" * 100_000
        written = 0

        async def fill() -> None:
            # The server goes by its size on disk, which may lag 100 ms behind what was written.
            nonlocal written
            for number in range(500):
                await client.put(f"k{number}", value)
                written += 1

        with pytest.raises(NoSpaceError) as caught:
            await fill()
        assert written > 2
        check(caught.value, NoSpaceError, StatusCode.RESOURCE_EXHAUSTED, text, server.endpoint, maybe_applied=True)
        with pytest.raises(NoSpaceError) as caught:
            await txn(client, op.put("t", value))
        check(caught.value, NoSpaceError, StatusCode.RESOURCE_EXHAUSTED, text, server.endpoint, maybe_applied=True)
        assert (await client.range(all_keys=True, keys_only=True)).count in (written, written + 1)
        assert (await client.delete("k0")).deleted == 1, "what makes room is still allowed"
        await client.compact((await client.range("k0")).revision)


async def test_what_is_refused_for_want_of_space_may_be_there_all_the_same() -> None:
    """A put that finds room when it is proposed and none when it is applied, is applied and refused."""
    for _ in range(16):
        async with (
            EtcdServer(flags=["--quota-backend-bytes=4000000"]) as server,
            Client(server.endpoint, timeout=30) as client,
        ):
            errors = await asyncio.gather(
                *(client.put(f"k{n}", b"x" * 60_000) for n in range(200)), return_exceptions=True
            )
            refused = {f"k{n}": error for n, error in enumerate(errors) if isinstance(error, NoSpaceError)}
            there = {kv.key.decode() for kv in await client.range(all_keys=True, keys_only=True)}
        assert all(error.maybe_applied for key, error in refused.items() if key in there)
        if there & refused.keys():
            return
    pytest.skip("this machine fills the store too slowly or too quickly: no put of 16 stores was applied and refused")


async def test_corrupt() -> None:
    async with EtcdServer() as server, Client(server.endpoint) as client:
        put = await client.put("k", "v")
        alarm: dict[str, object] = {"action": "ACTIVATE", "memberID": str(put.header.member_id), "alarm": "CORRUPT"}
        await ask(server.endpoint, "/v3/maintenance/alarm", body=alarm, timeout=5)
        calls: list[Awaitable[object]] = [
            client.put("k", "w"),
            client.delete("k"),
            txn(client, op.put("k", "w")),
            client.compact(put.revision),
        ]
        for call in calls:
            with pytest.raises(CorruptError) as caught:
                await call
            error = caught.value
            assert (type(error), error.code) == (CorruptError, StatusCode.DATA_LOSS)
            assert error.message == "etcdserver: corrupt cluster"
            assert (error.endpoint, len(error.attempts)) == (server.endpoint, 1)
        await ask(server.endpoint, "/v3/maintenance/alarm", body={**alarm, "action": "DEACTIVATE"}, timeout=5)
        found = await client.range("k")
        assert (found[0].text(), found.revision) == ("v", put.revision)


async def test_a_server_that_wants_to_know_who_asks() -> None:
    async with EtcdServer() as server, Client(server.endpoint) as client:
        await client.put("k", "v")
        await enable_auth(server)
        calls: list[Awaitable[object]] = [
            client.get("k"),
            client.get("k", serializable=True),
            client.put("k", "w"),
            client.delete("k"),
            txn(client, op.put("k", "w")),
            client.txn().when(Key("k").exists).commit(),
        ]
        for call in calls:
            with pytest.raises(UserEmptyError) as caught:
                await call
            check(caught.value, UserEmptyError, WRONG, "etcdserver: user name is empty", server.endpoint)


async def test_permission_denied(tmp_path: Path) -> None:
    """Known by the name in a certificate, the client needs no token."""
    authority = trustme.CA()
    files = [tmp_path / name for name in ("server.pem", "server.key", "ca.pem", "client.pem")]
    own = authority.issue_cert("127.0.0.1")
    own.cert_chain_pems[0].write_to_path(files[0])
    own.private_key_pem.write_to_path(files[1])
    authority.cert_pem.write_to_path(files[2])
    authority.issue_cert("reader@example.org", common_name="reader").private_key_and_cert_chain_pem.write_to_path(
        files[3]
    )
    tls = ssl.create_default_context(cafile=files[2])
    tls.load_cert_chain(files[3])
    text, denied = "etcdserver: permission denied", StatusCode.PERMISSION_DENIED
    async with (
        EtcdServer(tls=ServerTLS(files[0], files[1], files[2])) as server,
        Client(server.endpoint, tls=tls) as client,
    ):
        revision = (await client.put("k", "v")).revision
        await client.put("other", "v")
        await enable_auth(server, reader="k")
        kv = await client.get("k")
        assert kv is not None
        assert kv.text() == "v"
        assert await client.txn().when(Key("k").mod_revision == revision).then(op.get("k")).commit()
        assert await client.txn().when(Key("k").exists).commit(), (
            "no permission beyond that of the comparison is needed"
        )
        calls: list[Awaitable[object]] = [
            client.get("other"),
            client.range(prefix="k"),
            client.put("k", "w"),
            client.delete("k"),
            client.txn().when(Key("other").exists).commit(),
            txn(client, op.get("k"), op.put("k", "w")),
        ]
        for call in calls:
            with pytest.raises(PermissionDeniedError) as caught:
                await call
            check(caught.value, PermissionDeniedError, denied, text, server.endpoint)
            assert isinstance(caught.value, PermissionError)
