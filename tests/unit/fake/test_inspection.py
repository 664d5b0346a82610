"""fake/inspection.py: what tests see inside of a fake: leases, watchers and calls, as plain data."""

import asyncio
import gc
from dataclasses import FrozenInstanceError

import pytest
from hypothesis import given
from hypothesis import strategies as st

from etcd_aio import Client, RetryMode
from etcd_aio.errors import EtcdError, StatusCode, UnavailableError
from etcd_aio.fake import FakeCall, FakeEtcd
from etcd_aio.fake.refusals import Refusal
from etcd_aio.fake.server_streams import ServerStream
from tests.support.until import until
from tests.support.virtual_time import VirtualTimeLoop

pytestmark = [pytest.mark.anyio, pytest.mark.virtual_time]


async def test_leases_with_their_keys() -> None:
    async with FakeEtcd() as fake, fake.client() as client:
        assert list(fake.leases) == []
        long, short = await client.leases.grant(60), await client.leases.grant(5)
        await client.put("b", "", lease=short.id)
        await client.put("a", "", lease=short.id)
        await fake.advance(2.0)
        first, second = fake.leases
        assert (first.id, first.ttl, first.keys) == (short.id, 5, (b"a", b"b"))
        assert 2.9 < first.remaining <= 3.0
        assert (second.id, second.ttl, second.keys) == (long.id, 60, ())
        with pytest.raises(FrozenInstanceError):
            first.ttl = 6  # type: ignore[misc] # pyright: ignore[reportAttributeAccessIssue]
        await fake.advance(4.0)
        assert [one.id for one in fake.leases] == [long.id]


async def test_watchers_of_all_members() -> None:
    async with FakeEtcd(members=2) as fake, Client(fake.members[1].endpoint, engine=fake.engine) as client:
        fake.load({"a": "1"})
        async with client.watch("a") as one, client.watch(prefix="b/", start_revision=2):
            found = {watcher.key: watcher for watcher in fake.watchers}
            assert {key: watcher.range_end for key, watcher in found.items()} == {b"a": b"", b"b/": b"b0"}
            assert {watcher.member for watcher in fake.watchers} == {1}
            assert (found[b"a"].start_revision, found[b"b/"].start_revision) == (0, 2)
            await client.put("a", "2")
            await anext(one)
            await asyncio.sleep(1.0)
            assert [(watcher.next_revision, watcher.is_synced) for watcher in fake.watchers] == [(4, True)] * 2
            fake.members[1].isolate()
            fake.load({"a": "3"})
            assert all(watcher.next_revision == 4 for watcher in fake.watchers)
        await asyncio.sleep(1.0)
        assert fake.watchers == ()


async def test_calls_and_what_became_of_them() -> None:
    async with FakeEtcd(members=2) as fake, Client(fake.members[1].endpoint, engine=fake.engine) as client:
        await client.put("a", "1")
        with fake.fault("KV/Put", status="UNAVAILABLE", after_apply=True), pytest.raises(UnavailableError):
            await client.put("a", "2", retry="never")
        with fake.fault("KV/Put", status="UNAVAILABLE"), pytest.raises(UnavailableError):
            await client.put("a", "3", retry="never")
        with fake.fault("KV/Put", reset=True, after_apply=True), pytest.raises(EtcdError):
            await client.put("a", "4", retry="never")
        with pytest.raises(EtcdError):
            await client.compact(100)
        shown = [
            (one.method, one.member, one.is_applied, one.status, one.revision)
            for one in fake.calls
            if one.method != "Maintenance/Status"
        ]
        assert shown == [
            ("KV/Put", 1, True, StatusCode.OK, 2),
            ("KV/Put", 1, True, StatusCode.UNAVAILABLE, 3),
            ("KV/Put", 1, False, StatusCode.UNAVAILABLE, 3),
            ("KV/Put", 1, True, None, 4),
            ("KV/Compact", 1, False, StatusCode.OUT_OF_RANGE, 4),
        ]
        assert fake.calls[-1].message == "etcdserver: mvcc: required revision is a future revision"


async def test_a_stream_has_no_status_until_it_ends() -> None:
    async with FakeEtcd(members=3) as fake:
        client = Client(fake.members[2].endpoint, engine=fake.engine)
        async with client, client.watch("a"):
            (watch,) = [one for one in fake.calls if one.method == "Watch/Watch"]
            assert (watch.is_applied, watch.status) == (True, None)
            fake.members[2].isolate()
            (watch, *_) = [one for one in fake.calls if one.method == "Watch/Watch"]
            assert (watch.status, watch.message) == (StatusCode.UNAVAILABLE, "etcdserver: no leader")


async def test_nothing_that_was_written_is_shown() -> None:
    async with FakeEtcd() as fake, fake.client() as client:
        await client.put("a", "a text that is a secret")
        assert "secret" not in repr(fake.calls)


RETRIES: list[RetryMode] = ["safe", "never"]
FAULTS = st.fixed_dictionaries(
    {},
    optional={
        "status": st.sampled_from(["UNAVAILABLE", "NO_LEADER", "TIMEOUT", "INTERNAL"]),
        "after_apply": st.booleans(),
        "reset": st.booleans(),
        "hang": st.booleans(),
        "goaway": st.booleans(),
        "delay": st.sampled_from([0.1, 3.0]),
    },
).filter(
    lambda fault: (
        not fault.get("after_apply")
        # A fault that is nothing else is refused; and etcd answers that it has no leader before it applies anything.
        or ({name for name, value in fault.items() if value} != {"after_apply"} and fault.get("status") != "NO_LEADER")
    )
)


@pytest.mark.slow
@given(
    faults=st.lists(FAULTS, max_size=6),
    retry=st.sampled_from(RETRIES),
    seed=st.integers(0, 2**16),
    has_timeout=st.booleans(),
)
def test_what_a_client_says_of_a_write_agrees_with_the_truth(
    faults: list[dict[str, object]], retry: RetryMode, seed: int, has_timeout: bool
) -> None:
    """A write that was applied succeeds or says that it may be; one that cannot be says so only if it is not."""

    async def play() -> tuple[list[FakeCall], EtcdError | None]:
        timeout = 1.0 if has_timeout else 60.0
        async with FakeEtcd(seed=seed, members=2) as fake, fake.client(timeout=timeout) as client:
            await client.wait_ready()
            error = None
            blocks = [fake.fault("KV/Put", times=1, **one) for one in faults]  # type: ignore[arg-type]
            for block in blocks:
                block.__enter__()
            try:
                await client.put("a", "1", retry=retry)
            except EtcdError as caught:
                error = caught
            for block in blocks:
                block.__exit__(None, None, None)
            await asyncio.sleep(10.0)
            return [one for one in fake.calls if one.method == "KV/Put"], error

    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        puts, error = runner.run(play())
    applied = sum(one.is_applied for one in puts)
    assert applied <= 1, "at most once"
    if error is None:
        assert applied == 1
    else:
        assert error.maybe_applied or not applied


def test_the_truth_shows_a_write_that_is_applied_more_than_once() -> None:
    """What the property above looks for can be seen."""

    async def play() -> int:
        async with FakeEtcd() as fake, fake.client() as client:
            with fake.fault("KV/Put", status="UNAVAILABLE", after_apply=True, times=2):
                await client.put("a", "1", retry="always")
            return sum(one.is_applied for one in fake.calls if one.method == "KV/Put")

    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        assert runner.run(play()) == 3


async def test_the_log_of_calls_keeps_only_plain_data() -> None:
    gc.collect()
    before = {id(one) for one in gc.get_objects() if isinstance(one, ServerStream | Refusal)}
    async with FakeEtcd() as fake:
        async with fake.client() as client:
            for _ in range(3):
                async with client.cache(prefix="a"):  # which has a stream of its own
                    pass
                with pytest.raises(EtcdError):
                    await client.compact(100)
            await until(lambda: not fake.watchers)
        assert len(fake.calls) > 6
        gc.collect()
        found = [one for one in gc.get_objects() if isinstance(one, ServerStream | Refusal)]
        assert [one for one in found if id(one) not in before] == []
