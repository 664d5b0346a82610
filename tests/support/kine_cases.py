"""What the client does on kine, call by call: the page about other servers is made from this, and a test runs it."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final, Literal

import pytest

from etcd_aio import Client, Key, TxnResult, op
from etcd_aio.errors import ConnectError, MalformedReplyError, NotSupportedByServerError
from etcd_aio.mirror import Mirror
from tests.support.command_line import run
from tests.support.recipe_cases import CASES as RECIPES

Verdict = Literal["works", "works with limits", "refused", "**wrong result**"]
Use = Callable[[Client, str, str], Awaitable[object]]

_SECONDS: Final = 20.0  # ends what hangs


@dataclass(frozen=True)
class KineCase:
    """One call, or some of a kind.

    Attributes:
        what: as the page shows it.
        verdict: what comes of it.
        note: for the page.
        use: does it, with the client, a key that no other case uses, and the endpoint. It asserts what the verdict
            says; what is refused raises.
    """

    what: str
    verdict: Verdict
    note: str
    use: Use


async def refused(case: KineCase, client: Client, name: str, endpoint: str) -> None:
    """Check that the calls of a case are refused, clearly and at once."""
    async with asyncio.timeout(_SECONDS):
        with pytest.raises(NotSupportedByServerError) as caught:
            await case.use(client, name, endpoint)
    assert not caught.value.maybe_applied
    assert "is not served here" in str(caught.value)


async def _txn(
    client: Client, when: Sequence[object], then: Sequence[object], otherwise: Sequence[object]
) -> TxnResult:
    return await client.txn().when(*when).then(*then).otherwise(*otherwise).commit()  # type: ignore[arg-type]


async def _fill(client: Client, name: str) -> None:
    for number in range(3):
        await client.put(f"{name}/{number}", f"v{number}")


async def _read(client: Client, name: str, endpoint: str) -> None:
    await _fill(client, name)
    put = await client.put(f"{name}/1", "w", prev_kv=True)
    assert put.prev_kv is not None
    assert put.prev_kv.text() == "v1"
    kv = await client.get(f"{name}/1")
    assert kv is not None
    assert (kv.text(), kv.mod_revision) == ("w", put.header.revision)
    old = await client.get(f"{name}/1", revision=put.header.revision - 1)
    assert old is not None
    assert old.text() == "v1"
    assert await client.get(f"{name}/none") is None


async def _versions(client: Client, name: str, endpoint: str) -> None:
    await client.put(name, "1")
    kv = await client.get(name)
    assert kv is not None
    assert kv.version == 0


async def _range(client: Client, name: str, endpoint: str) -> None:
    await _fill(client, name)
    assert [kv.text() for kv in (await client.range(prefix=f"{name}/")).kvs] == ["v0", "v1", "v2"]
    assert [kv.text() for kv in (await client.range(f"{name}/0", range_end=f"{name}/2")).kvs] == ["v0", "v1"]
    part = await client.range(prefix=f"{name}/", limit=2, keys_only=True)
    assert (len(part.kvs), part.count, part.more) == (2, 3, True)
    assert (await client.range(prefix=f"{name}/", count_only=True)).count == 3
    assert (await client.range(all_keys=True)).count >= 3
    assert [kv.text() async for kv in client.scan(prefix=f"{name}/", page_size=1)] == ["v0", "v1", "v2"]


async def _all_keys(client: Client, name: str, endpoint: str) -> None:
    revision = (await client.put(f"~~~/{name}", "the last key")).header.revision
    everything = [kv.key for kv in (await client.range(all_keys=True)).kvs]
    assert everything[-1] == f"~~~/{name}".encode()
    limited = await client.range(all_keys=True, limit=2)
    assert ([kv.key for kv in limited.kvs], limited.more) == (everything[:-1], True)
    assert [kv.key async for kv in client.scan(all_keys=True, page_size=2)] == everything[:-1]
    assert not (await client.range(all_keys=True, revision=revision)).kvs


async def _from_key(client: Client, name: str, endpoint: str) -> None:
    await _fill(client, name)
    assert (await client.range(from_key=f"{name}/1")).kvs == ()


async def _watch_from_key(client: Client, name: str, endpoint: str) -> None:
    async with client.watch(from_key=name) as watcher:
        await client.put(f"{name}/1", "v")
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(anext(watcher), 2)


async def _filters(client: Client, name: str, endpoint: str) -> None:
    async with client.watch(prefix=name, filters=["no_put"]) as watcher:
        await client.put(name, "v")
        assert (await asyncio.wait_for(anext(watcher), _SECONDS)).value == b"v"


async def _sorted(client: Client, name: str, endpoint: str) -> None:
    await client.range(prefix=name, sort_by="mod_revision")


async def _descending(client: Client, name: str, endpoint: str) -> None:
    await client.range(prefix=name, sort_order="descend")


async def _create(client: Client, name: str, endpoint: str) -> None:
    assert await client.put(name, "1", if_missing=True)
    assert not await client.put(name, "2", if_missing=True)
    assert await _txn(client, [Key(f"{name}/a").mod_revision == 0], [op.put(f"{name}/a", "1")], [op.get(f"{name}/a")])
    assert not await _txn(client, [Key(f"{name}/a").missing], [op.put(f"{name}/a", "2")], [])


async def _update(client: Client, name: str, endpoint: str) -> None:
    await client.put(name, "1")
    kv = await client.get(name)
    assert kv is not None
    is_same = Key(name).mod_revision == kv.mod_revision
    assert await _txn(client, [is_same], [op.put(name, "2")], [op.get(name)])
    get = op.get(name)
    late = await _txn(client, [is_same], [op.put(name, "3")], [get])
    assert not late
    found = late[get]
    assert found is not None
    assert found.text() == "2"


async def _update_existing(client: Client, name: str, endpoint: str) -> None:
    await client.update(name, lambda value: b"1")  # a key that is missing is created
    await client.update(name, lambda value: b"2")


async def _delete(client: Client, name: str, endpoint: str) -> None:
    await client.put(name, "1")
    kv = await client.get(name)
    assert kv is not None
    is_same = Key(name).mod_revision == kv.mod_revision
    assert await _txn(client, [is_same], [op.delete(name)], [op.get(name)])
    assert await client.get(name) is None


async def _other_key(client: Client, name: str, endpoint: str) -> None:
    await client.put(f"{name}/lock", "mine")
    kv = await client.get(f"{name}/lock")
    assert kv is not None
    is_held = Key(f"{name}/lock").mod_revision == kv.mod_revision
    assert await _txn(client, [is_held], [op.put(f"{name}/data", "x")], [op.get(f"{name}/data")])
    overwritten = await client.get(f"{name}/lock")
    assert overwritten is not None
    assert overwritten.text() == "x"
    assert await client.get(f"{name}/data") is None


async def _ignored_condition(client: Client, name: str, endpoint: str) -> None:
    await client.put(f"{name}/a", "1")
    assert await _txn(client, [Key(f"{name}/a").missing], [op.put(f"{name}/b", "1")], [])


async def _delete_prefix(client: Client, name: str, endpoint: str) -> None:
    await _fill(client, name)
    kv = await client.get(f"{name}/0")
    assert kv is not None
    is_same = Key(f"{name}/0").mod_revision == kv.mod_revision
    assert await _txn(client, [is_same], [op.delete(f"{name}/0", range_end=f"{name}/9")], [op.get(f"{name}/0")])
    assert (await client.range(prefix=f"{name}/")).count == 2


async def _health(client: Client, name: str, endpoint: str) -> None:
    for ask in (client.maintenance.livez, client.maintenance.readyz):
        with pytest.raises(ConnectError):
            await ask(endpoint, timeout=_SECONDS)


async def _condition_of_range(client: Client, name: str, endpoint: str) -> None:
    await client.put(f"{name}/a/other", "1")
    assert await _txn(client, [Key(prefix=f"{name}/a").missing], [op.put(f"{name}/a", "1")], [])


async def _other_read(client: Client, name: str, endpoint: str) -> None:
    await _fill(client, name)
    get, others = op.get(f"{name}/1"), op.range(prefix=f"{name}/")
    for read in (get, others):
        assert not await _txn(client, [Key(f"{name}/0").missing], [op.put(f"{name}/0", "x")], [read])
    late = await _txn(client, [Key(f"{name}/0").missing], [op.put(f"{name}/0", "x")], [get])
    found = late[get]
    assert found is not None
    assert found.key == f"{name}/0".encode()
    late = await _txn(client, [Key(f"{name}/0").missing], [op.put(f"{name}/0", "x")], [others])
    assert [kv.value for kv in late[others].kvs] == [b"v0"]


async def _no_previous(client: Client, name: str, endpoint: str) -> None:
    put = op.put(name, "2", prev_kv=True)
    revision = (await client.put(name, "1")).header.revision
    done = await _txn(client, [Key(name).mod_revision == revision], [put], [op.get(name)])
    assert done
    assert done[put].prev_kv is None


async def _delete_missing(client: Client, name: str, endpoint: str) -> None:
    delete = op.delete(name)
    done = await _txn(client, [Key(name).missing], [delete], [op.get(name)])
    assert done[delete].deleted == 1


async def _unconditional_delete(client: Client, name: str, endpoint: str) -> None:
    await client.put(name, "1")
    with pytest.raises(MalformedReplyError, match="without conditions"):
        await _txn(client, [], [op.get(name), op.delete(name)], [])
    assert await client.get(name) is not None


async def _watch(client: Client, name: str, endpoint: str) -> None:
    first = (await client.put(f"{name}/0", "old")).header.revision
    async with client.watch(prefix=f"{name}/", start_revision=first, prev_kv=True) as watcher:
        await client.put(f"{name}/0", "new")
        old, new = [await asyncio.wait_for(anext(watcher), _SECONDS) for _ in range(2)]
    assert (old.value, new.value, new.prev_kv and new.prev_kv.value) == (b"old", b"new", b"old")


async def _many_watches(client: Client, name: str, endpoint: str) -> None:
    async def first(number: int) -> bytes:
        async with client.watch(f"{name}/{number}", start_revision=begin) as watcher:
            return (await asyncio.wait_for(anext(watcher), _SECONDS)).value

    begin = (await client.put(name, "")).header.revision + 1
    waiting = [asyncio.ensure_future(first(number)) for number in range(20)]
    for number in range(20):
        await client.put(f"{name}/{number}", str(number))
    assert await asyncio.gather(*waiting) == [str(number).encode() for number in range(20)]


async def _progress(client: Client, name: str, endpoint: str) -> None:
    async with client.watch(name, progress_notify=True) as watcher, asyncio.timeout(_SECONDS):
        revision = (await client.put(f"{name}/other", "1")).header.revision
        while (await watcher.next_batch()).revision < revision:
            pass


async def _cache(client: Client, name: str, endpoint: str) -> None:
    await _fill(client, name)
    async with client.cache(prefix=f"{name}/") as cache, asyncio.timeout(_SECONDS):
        assert len(cache) == 3
        written = await client.put(f"{name}/1", "new")
        await cache.wait_revision(written.header.revision)
        assert cache[f"{name}/1"].text() == "new"
        with pytest.raises(NotSupportedByServerError):
            await cache.read(f"{name}/1")


async def _ordered(client: Client, name: str, endpoint: str) -> None:
    view = client.ordered()
    await view.put(name, "1")
    kv = await view.get(name)
    assert kv is not None
    assert view.revision >= kv.mod_revision


async def _namespace(client: Client, name: str, endpoint: str) -> None:
    space = client.namespace(f"{name}/")
    await space.put("a", "1", if_missing=True)
    assert [kv.key for kv in (await space.range(prefix="")).kvs] == [b"a"]
    async with space.watch("a", start_revision=1) as watcher:
        assert (await asyncio.wait_for(anext(watcher), _SECONDS)).key == b"a"


async def _is_deleted(client: Client, name: str) -> None:
    async with asyncio.timeout(_SECONDS), client.watch(name, start_revision=1) as watcher:
        async for event in watcher:
            if event.is_delete:
                return


async def _ttl(client: Client, name: str, endpoint: str) -> None:
    await client.put(name, "1", lease=1)
    assert await client.get(name) is not None
    await _is_deleted(client, name)


async def _big_ttl(client: Client, name: str, endpoint: str) -> None:
    await client.put(name, "1", lease=0x7FFF_FFFF_0000_0001)
    await _is_deleted(client, name)


async def _lease(client: Client, name: str, endpoint: str) -> None:
    async with client.lease(10):
        pass


async def _lock(client: Client, name: str, endpoint: str) -> None:
    async with client.lock(name):
        pass


async def _lead(client: Client, name: str, endpoint: str) -> None:
    async with client.election(name).lead("me"):
        pass


async def _session(client: Client, name: str, endpoint: str) -> None:
    async with client.session():
        pass


async def _semaphore(client: Client, name: str, endpoint: str) -> None:
    async with client.semaphore(name, limit=2):
        pass


async def _rwlock(client: Client, name: str, endpoint: str) -> None:
    async with client.rwlock(name).reading():
        pass


async def _register(client: Client, name: str, endpoint: str) -> None:
    async with client.register(name, "10.0.0.1:80"):
        pass


async def _once(client: Client, name: str, endpoint: str) -> None:
    async with client.exactly_once() as once:
        await once.put(name, "1")


async def _stm(client: Client, name: str, endpoint: str) -> None:
    async def both(tx: object) -> None:
        for key in ("a", "b"):
            await tx.get(f"{name}/{key}")  # type: ignore[attr-defined]
            tx.put(f"{name}/{key}", "1")  # type: ignore[attr-defined]

    await client.stm(both)


async def _kubernetes(client: Client, name: str, endpoint: str) -> None:
    calls = client.kubernetes()
    created = await calls.optimistic_put(f"{name}/a", "v1", 0)
    changed = await calls.optimistic_put(f"{name}/a", "v2", created.revision)
    assert (created.succeeded, changed.succeeded) == (True, True)
    for late in (
        await calls.optimistic_put(f"{name}/a", "v3", created.revision),
        await calls.optimistic_put(f"{name}/a", "v3", 0),
        await calls.optimistic_delete(f"{name}/a", created.revision),
    ):
        assert not late.succeeded
        assert late.kv is not None
        assert late.kv.text() == "v2"
    await calls.optimistic_put(f"{name}/b", "v", 0)
    page = await calls.list(f"{name}/", limit=1)
    rest = await calls.list(f"{name}/", limit=1, continue_key=page.next_key, revision=page.revision)
    assert [kv.text() for kv in (*page.kvs, *rest.kvs)] == ["v2", "v"]
    assert await calls.count(f"{name}/") == 2
    assert (await calls.optimistic_delete(f"{name}/a", changed.revision)).succeeded
    assert (await calls.get(f"{name}/a")).kv is None


async def _mirror(client: Client, name: str, endpoint: str) -> None:
    await _fill(client, name)
    async with Client(endpoint) as other:
        await Mirror(client, other, prefix=f"{name}/", to_prefix=f"{name}-copy/").run()


async def _compact(client: Client, name: str, endpoint: str) -> None:
    first = (await client.put(name, "1")).header.revision
    last = (await client.put(name, "2")).header.revision
    await client.compact(last)
    assert (await client.get(name, revision=first)) is not None  # kine keeps the last thousand revisions


async def _members(client: Client, name: str, endpoint: str) -> None:
    (member,) = (await client.cluster.members()).members
    assert (member.id, member.name) == (0, "kine")


async def _status(client: Client, name: str, endpoint: str) -> None:
    status = await client.maintenance.status(endpoint=endpoint)
    assert (status.leader, status.header.revision) == (0, 0)
    assert status.db_size > 0


async def _cli(client: Client, name: str, endpoint: str) -> None:
    there = f"--endpoints={endpoint}"
    assert (await run(there, "put", name, stdin=b"value")).code == 0
    assert (await run(there, "get", name, "--raw")).stdout == b"value"
    assert (await run(there, "endpoint", "status")).code == 0
    assert (await run(there, "endpoint", "health")).code == 1  # it asks for alarms
    for refused in (("del", name), ("lease", "grant", "10"), ("lock", name, "true"), ("endpoint", "hashkv")):
        result = await run(there, *refused)
        assert result.code != 0
        assert "is not served here" in str(result.stderr), refused


def _recipe(name: str) -> Use:
    use = next(case.use for case in RECIPES if case.name == name)
    return lambda client, key, endpoint: use(client, key)


def _call(call: Callable[[Client], Awaitable[object]]) -> Use:
    return lambda client, name, endpoint: call(client)


CASES: Final = (
    KineCase("`put`, `get`, also of an old revision, `prev_kv`", "works", "", _read),
    KineCase("`version` of a key", "**wrong result**", "always 0: kine does not count", _versions),
    KineCase(
        "`range` and `scan` of a prefix, of a range, of all keys; `limit`, `keys_only`, `count_only`",
        "works", "", _range,
    ),
    KineCase(
        "`range` of all keys with a `limit` or a `revision`; `scan` of all keys, if they are more than a page",
        "**wrong result**", "the last key is missing; with a `revision`, all are", _all_keys,
    ),
    KineCase("`range` and `scan` with `from_key`", "**wrong result**", "empty, whatever there is", _from_key),
    KineCase("`range` sorted by anything but the key", "refused", "", _sorted),
    KineCase("`range` in descending order", "refused", "", _descending),
    KineCase(
        "`serializable`, and bounds such as `min_mod_revision`", "refused", "",
        _call(lambda client: client.range(prefix="x", serializable=True)),
    ),
    KineCase(
        "`put` with `ignore_value` or `ignore_lease`", "refused", "",
        _call(lambda client: client.put("x", ignore_value=True)),
    ),
    KineCase("`client.kubernetes()`: all of it", "works", "the best way to write on kine", _kubernetes),
    KineCase("`put(if_missing=True)`", "works", "", _create),
    KineCase(
        "a txn that puts the key whose `mod_revision` it compares, with a `get` of it otherwise",
        "works", "the put detaches the key from its lease", _update,
    ),
    KineCase(
        "`update`", "refused", "but for a key that is missing; use `kubernetes().optimistic_put`", _update_existing,
    ),
    KineCase("`delete`", "refused", "use `kubernetes().optimistic_delete`", _call(lambda client: client.delete("x"))),
    KineCase(
        "a txn that deletes the key whose `mod_revision` it compares, with a `get` of it otherwise",
        "works", "", _delete,
    ),
    KineCase(
        "such a txn that puts **another** key than it compares, as fenced writes do",
        "**wrong result**", "the compared key is overwritten, and the other is not put", _other_key,
    ),
    KineCase(
        "a txn that puts one key if **another** is missing",
        "**wrong result**", "only the key that is put is looked at", _ignored_condition,
    ),
    KineCase("such a txn that deletes a range", "**wrong result**", "only its first key is deleted", _delete_prefix),
    KineCase("a condition about a range", "**wrong result**", "only its first key is looked at", _condition_of_range),
    KineCase(
        "such a txn with a read of another key, or of a range, otherwise",
        "**wrong result**", "the key that is put or deleted is read", _other_read,
    ),
    KineCase("`prev_kv` of a put in a txn", "**wrong result**", "None, whatever there was", _no_previous),
    KineCase(
        "a txn that deletes a key that is missing", "**wrong result**", "says that one was deleted", _delete_missing
    ),
    KineCase(
        "a txn with a `get` and a `delete` and no condition",
        "works with limits", "`MalformedReplyError`, and nothing is deleted", _unconditional_delete,
    ),
    KineCase(
        "every other txn: several puts, several conditions, nested ones, `version`, `value`", "refused", "",
        _call(lambda client: client.txn().then(op.put("x", "1"), op.put("y", "1")).commit()),
    ),
    KineCase("`stm` over several keys", "refused", "", _stm),
    KineCase("`watch` of a key, a prefix, all keys, from an old revision", "works", "", _watch),
    KineCase("many watches at once", "works", "created one after the other, each by a round trip", _many_watches),
    KineCase("`watch` with `from_key`", "**wrong result**", "no event comes", _watch_from_key),
    KineCase("`watch` with `filters`", "**wrong result**", "kine ignores them: every event comes", _filters),
    KineCase(
        "progress of a watch", "works with limits",
        "with `progress_notify=True`; `request_progress` may stay unanswered", _progress,
    ),
    KineCase(
        "`cache`", "works with limits", "what is read at once; `cache.read` and `wait_current` are refused", _cache
    ),
    KineCase("`ordered()`", "works", "kine is one server, so it changes nothing", _ordered),
    KineCase("`namespace()`", "works", "for the calls that work without it", _namespace),
    KineCase(
        "`put(lease=10)`, without a lease: a TTL", "works with limits",
        "kine takes the id of a lease as seconds: the key is deleted so long after its last put", _ttl,
    ),
    KineCase(
        "`put` with the id of a lease of etcd", "**wrong result**",
        "so many seconds overflow: the key is deleted at once, or stays for centuries", _big_ttl,
    ),
    KineCase("`lease`, `leases.grant`", "refused", "kine answers with another id than was asked for", _lease),
    KineCase(
        "`leases.revoke`, `keep_alive_once`, `time_to_live`, `list`", "refused", "",
        _call(lambda client: client.leases.revoke(5)),
    ),
    KineCase("locks", "refused", "they need leases, as the next five do", _lock),
    KineCase("read-write locks", "refused", "", _rwlock),
    KineCase("semaphores", "refused", "", _semaphore),
    KineCase("elections", "refused", "", _lead),
    KineCase("sessions", "refused", "", _session),
    KineCase("`register`", "refused", "", _register),
    KineCase("exactly-once writes", "refused", "", _once),
    KineCase("`Counter`", "works", "", _recipe("counter")),
    KineCase("`IdAllocator`", "works", "", _recipe("ids")),
    *(
        KineCase(f"`{name}`", "refused", "", _recipe(recipe))
        for name, recipe in (
            ("Queue", "queue"), ("PriorityQueue", "priority queue"), ("WorkQueue", "work queue"),
            ("Barrier", "barrier"), ("DoubleBarrier", "double barrier"), ("Group", "group"), ("Schedule", "schedule"),
        )
    ),
    KineCase("a mirror that writes to kine", "refused", "", _mirror),
    KineCase("`compact`", "works with limits", "kine keeps the last thousand revisions all the same", _compact),
    KineCase("`cluster.members`", "works with limits", "one member, whose id is 0", _members),
    KineCase(
        "`maintenance.livez`, `readyz`", "works with limits", "`ConnectError`: kine answers no HTTP/1", _health
    ),
    KineCase("changes of the members", "refused", "", _call(lambda client: client.cluster.remove(1))),
    KineCase("`maintenance.status`", "works with limits", "no leader, no revision, and a made-up version", _status),
    KineCase(
        "alarms, `defragment`, `hash`, `hash_kv`, snapshots, `downgrade`", "refused", "",
        _call(lambda client: client.maintenance.alarms()),
    ),
    KineCase("authentication", "refused", "", _call(lambda client: client.auth.user_add("x", "y"))),
    KineCase(
        "the command line", "works with limits",
        "as the calls that it makes; `endpoint health` fails, since it asks for alarms", _cli,
    ),
)  # fmt: skip
"""In the order of the page."""
