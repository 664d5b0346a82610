"""watch/service.py: listings of resyncs, checks of the store and of releases, new tokens."""

import asyncio
import sys
from collections import deque
from typing import Any

import pytest

from etcd_aio import codec, methods, pb
from etcd_aio.balancer import StoreDoubts
from etcd_aio.base.call_options import UNSET, RetryMode, Timeout
from etcd_aio.error_handler.description import explain
from etcd_aio.errors import (
    AuthenticationFailedError,
    CompactedError,
    ConnectionLostError,
    EtcdError,
    EtcdTimeoutError,
    FutureRevisionError,
    InvalidTokenError,
    NoAvailableEndpointsError,
    PermissionDeniedError,
    RequestTooLargeError,
    StoreRolledBackError,
)
from etcd_aio.kv.operations import RangeOp
from etcd_aio.methods import AnyMethod
from etcd_aio.observing import ObserverGroup
from etcd_aio.types import Header, KeyValue, RangeResult, StatusResult, WatchReply
from etcd_aio.types.enums import WatchFilter
from etcd_aio.types.keys import KeyRange
from etcd_aio.watch.compaction_resync import KnownKeys
from etcd_aio.watch.requests import watch_request
from etcd_aio.watch.service import MAX_REQUEST_BYTES, WatchService
from etcd_aio.watch.state import Phase, WatchOptions, WatchState
from tests.support.virtual_time import tasks, turns

pytestmark = [pytest.mark.anyio, pytest.mark.virtual_time]
KEYS = KeyRange.of(prefix="k")


class Supervisor:
    """One that does nothing."""

    is_open = False
    endpoint = "m1"

    def wake(self) -> None:
        """Do nothing."""

    def outage_error(self) -> EtcdError:
        return NoAvailableEndpointsError()

    def timeout_error(self, since: float) -> EtcdError:
        del since
        return EtcdTimeoutError() if self.is_open else self.outage_error()

    def __init__(self) -> None:
        self.has_old_token = False
        self.seconds = 1.0
        self.renewals: list[EtcdError] = []
        self.lacking: EtcdError | None = None

    async def renew_token(self, error: EtcdError) -> EtcdError | None:
        self.renewals.append(error)
        if self.seconds:
            await asyncio.sleep(self.seconds)
        return self.lacking


class Invoker:
    """A clock, and a supervisor."""

    client = ""
    max_send_bytes = 2**21
    may_renew = True

    def __init__(self) -> None:
        self.observers = ObserverGroup()
        self.doubts = StoreDoubts()
        self.supervisor = Supervisor()
        self.release: str | EtcdError = ""
        self.asked = 0

    def supervise(self, method: object, handler: object, name: str, *, make_decoder: object) -> Supervisor:
        assert (getattr(method, "name", ""), name) == ("Watch/Watch", "watch")
        assert handler is not None
        return self.supervisor

    def explain(self, error: EtcdError, method: AnyMethod, request: pb.Message) -> None:
        explain(error, method, request, None)

    def may_renew_token(self, error: EtcdError) -> bool:
        return self.may_renew

    async def unary(self, method: object, request: object, *, needs_leader: bool, endpoint: str) -> Any:
        assert (method, request, needs_leader, endpoint) == (methods.STATUS, pb.StatusRequest(), False, "m1")
        self.asked += 1
        if isinstance(self.release, EtcdError):
            raise self.release
        return StatusResult(Header(), version=self.release)

    def clock(self) -> float:
        return asyncio.get_running_loop().time()

    def deadline(self, timeout: Timeout, now: float) -> float:
        return now + (timeout if isinstance(timeout, int | float) else 5.0)


class Store:
    """Answers pages from a script."""

    def __init__(self, *answers: RangeResult | EtcdError) -> None:
        self.answers = deque(answers)
        self.asked: list[tuple[RangeOp, Timeout]] = []
        self.invoker = Invoker()
        self.service = WatchService(self.invoker, self.read_page)  # type: ignore[arg-type] # as much of an invoker as watches use

    async def read_page(self, operation: RangeOp, *, timeout: Timeout, retry: RetryMode | None) -> RangeResult:
        assert retry is None
        self.asked.append((operation, timeout))
        answer = self.answers.popleft()
        if isinstance(answer, EtcdError):
            raise answer
        return answer

    def watch(self, start: int, phase: Phase, **options: Any) -> WatchState:
        state = WatchState(WatchOptions(KEYS, resync=True, **options), start, lambda: None)
        state.known = KnownKeys()
        self.service.add(state)
        if phase is Phase.LISTING:
            state.move(Phase.CREATING)
            state.move(Phase.LISTING)
            self.service.start_listing(state)
        return state


async def listed(state: WatchState) -> None:
    """Wait until the keys of a watch are listed."""
    while state.phase is Phase.LISTING:  # noqa: ASYNC110 - virtual time
        await asyncio.sleep(0.001)


def page(revision: int, *kvs: tuple[bytes, int], more: bool = False) -> RangeResult:
    found = tuple(KeyValue(key, b"v", mod_revision=changed) for key, changed in kvs)
    return RangeResult(Header(revision=revision), found, more=more, count=len(found))


async def test_a_check_of_the_store_without_an_answer_is_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store()
    told: list[int] = []
    monkeypatch.setattr(store.service._stream, "store_is_at", told.append)

    async def read_page(operation: RangeOp, **options: object) -> RangeResult:
        store.asked.append((operation, None))
        if len(store.asked) < 3:
            await asyncio.Event().wait()
        return page(31)

    store.service._read_page = read_page
    store.service.check_store(WatchState(WatchOptions(KEYS), 8, lambda: None))
    await asyncio.sleep(120)
    assert told == [31]
    assert [operation.keys.key for operation, _ in store.asked] == [b"k"] * 3
    assert not tasks()


async def test_the_first_keys_are_listed_as_they_were_before_the_beginning() -> None:
    store = Store(page(9, (b"ka", 1), more=True), page(9, (b"kb", 2)))
    state = store.watch(8, Phase.WAITING)
    await store.service.list_first_keys(state, store.invoker.clock() + 5)
    assert state.known is not None
    assert state.known.replace([]) == {b"ka", b"kb"}
    for operation, timeout in store.asked:
        assert (operation.revision, operation.keys_only, timeout) == (7, True, 5.0)


@pytest.mark.parametrize("start", [1, 8])
async def test_without_an_earlier_revision_no_keys_are_known(start: int) -> None:
    store = Store(CompactedError())
    state = store.watch(start, Phase.WAITING)
    await store.service.list_first_keys(state, store.invoker.clock() + 5)
    assert state.known is not None
    assert state.known.is_complete
    assert state.known.replace([b"k"]) == set()
    assert len(store.asked) == (start > 1)


async def test_for_a_start_in_the_future_the_present_keys_are_known() -> None:
    store = Store(FutureRevisionError(), page(5, (b"ka", 1)))
    state = store.watch(8, Phase.WAITING)
    await store.service.list_first_keys(state, store.invoker.clock() + 5)
    assert state.known is not None
    assert state.known.replace([]) == {b"ka"}
    assert [operation.revision for operation, _ in store.asked] == [7, 0]


async def test_a_resync_delivers_the_difference() -> None:
    store = Store(page(30, (b"ka", 5), (b"kb", 20), more=True), page(31, (b"kc", 8), (b"kd", 7)))
    state = store.watch(8, Phase.LISTING)
    assert state.known is not None
    state.known.begin([b"ka", b"kgone"])
    await listed(state)
    batch = state.take()
    assert [(event.type.name, event.key) for event in batch] == [("PUT", b"kc"), ("PUT", b"kb"), ("DELETE", b"kgone")]
    assert (batch.revision, state.next_revision, state.phase) == (30, 31, Phase.WAITING)
    assert [operation.revision for operation, _ in store.asked] == [0, 30]
    assert {timeout for _, timeout in store.asked} == {UNSET}


async def test_a_watch_without_deletes_gets_none_from_a_resync() -> None:
    store = Store(page(30, (b"ka", 20)))
    state = store.watch(8, Phase.LISTING, filters=(WatchFilter.NO_DELETE,))
    state.known = None
    await listed(state)
    assert [event.key for event in state.take()] == [b"ka"]


async def test_a_resync_goes_on_until_it_succeeds() -> None:
    store = Store(EtcdTimeoutError(), NoAvailableEndpointsError(), page(30, (b"ka", 9), more=True), CompactedError())
    store.answers.append(page(40, (b"ka", 9)))
    state = store.watch(8, Phase.LISTING)
    began = store.invoker.clock()
    await listed(state)
    assert state.take().revision == 40
    assert 0.4 < store.invoker.clock() - began < 1.2


async def test_an_error_that_is_not_retryable_ends_the_watch() -> None:
    store = Store(PermissionDeniedError())
    state = store.watch(8, Phase.LISTING)
    await listed(state)
    assert isinstance(state.error, PermissionDeniedError)


async def test_an_unexpected_exception_ends_the_watch_instead_of_hanging_it() -> None:
    store = Store()  # which has no answer: an IndexError
    state = store.watch(8, Phase.LISTING)
    await listed(state)
    assert state.phase is Phase.ENDED
    assert isinstance(state.error, EtcdError)
    assert isinstance(state.error.__cause__, IndexError)


@pytest.mark.parametrize(("max_send_bytes", "most"), [(2**21, MAX_REQUEST_BYTES), (1000, 1000)])
async def test_a_request_that_could_be_refused_is_not_sent(max_send_bytes: int, most: int) -> None:
    store = Store()
    store.invoker.max_send_bytes = max_send_bytes
    for size, is_sent in ((most // 2 - 50, True), (most // 2, False)):
        state = WatchState(WatchOptions(KeyRange.of(prefix=bytes(size))), 2**63 - 1, lambda: None)
        assert (len(codec.encode(watch_request(state.options, 2**62, 2**63 - 1, True))) < most) == is_sent
        if is_sent:
            store.service.add(state)
        else:
            with pytest.raises(RequestTooLargeError, match=f"at most {most} can be sent"):
                store.service.add(state)


async def test_a_watch_that_ended_meanwhile_is_listed_no_more() -> None:
    store = Store(EtcdTimeoutError())
    state = store.watch(8, Phase.LISTING)
    await turns()
    (task,) = [task for task in asyncio.all_tasks() if task.get_name() == "etcd_aio watch resync"]
    store.service.close(state)
    await turns()
    assert task.cancelled()
    assert len(store.asked) == 1


async def test_the_keys_of_a_watch_are_listed_by_one_task_at_a_time() -> None:
    store = Store(EtcdTimeoutError(), page(30))
    state = store.watch(8, Phase.LISTING)
    await turns()
    store.service.start_listing(state)
    await listed(state)
    assert len(store.asked) == 2
    await turns()
    store.answers.append(page(40))
    state.move(Phase.CREATING)
    state.move(Phase.LISTING)
    store.service.start_listing(state)
    await listed(state)
    assert len(store.asked) == 3
    await turns()
    assert not tasks()


async def test_the_error_of_a_watch_that_is_not_created_in_time() -> None:
    store = Store()
    watch = store.service.timeout_error(WatchState(WatchOptions(KeyRange(b"k")), 7, lambda: None), 0.0)
    assert isinstance(watch, NoAvailableEndpointsError)
    assert watch.call == "watch 'k' from revision 7"
    store.invoker.supervisor.is_open = True
    assert isinstance(
        store.service.timeout_error(WatchState(WatchOptions(KeyRange(b"k")), 7, lambda: None), 0.0), EtcdTimeoutError
    )


async def went_back(*answers: RangeResult | EtcdError) -> tuple[Store, WatchState]:
    """A watch that has seen revision 52, on a new stream whose member is at 30."""
    store = Store(*answers)
    watch = WatchState(WatchOptions(KEYS), 0, lambda: None)
    machine = store.service._stream
    store.service.add(watch)
    for revision in (52, 30):
        machine.on_open("m1", 0.0)
        (request,) = machine.requests(0.0)
        assert request.create_request is not None
        machine.on_reply(WatchReply(Header(1, 1, revision), request.create_request.watch_id, created=True), 0.0)
        if revision == 52:
            machine.on_lost(ConnectionLostError("lost"), 0.0)
    await asyncio.sleep(1)
    return store, watch


async def test_a_linearizable_read_finds_out_whether_the_store_went_back() -> None:
    store, watch = await went_back(page(30))
    ((operation, timeout),) = store.asked
    assert (operation.keys, operation.serializable, timeout) == (KeyRange(b"k"), False, None)
    assert isinstance(watch.error, StoreRolledBackError)


@pytest.mark.parametrize("answer", [page(52), PermissionDeniedError()])
async def test_a_member_that_lags_ends_no_watch(answer: RangeResult | EtcdError) -> None:
    _, watch = await went_back(answer)
    assert (watch.phase, watch.error) == (Phase.LIVE, None)


@pytest.mark.parametrize(
    ("release", "is_reliable"),
    [
        *[(release, False) for release in ("3.4.24", "3.5.0", "3.5.7", "", EtcdTimeoutError())],
        *[(release, True) for release in ("3.4.25", "3.5.8", "3.6.0-rc.1", "3.7.3")],
    ],
)
async def test_progress_notifications_for_all_are_reliable_on_known_releases(
    release: str | EtcdError, is_reliable: bool
) -> None:
    store = Store()
    store.invoker.release = release
    watch = WatchState(WatchOptions(KEYS), 5, lambda: None)
    store.service.add(watch)
    machine = store.service._stream
    machine.on_open("m1", 0.0)
    (request,) = machine.requests(0.0)
    assert request.create_request is not None
    machine.on_reply(WatchReply(Header(1, 1, 10), request.create_request.watch_id, created=True), 0.0)
    for revision in (20, 30):
        machine.on_reply(WatchReply(Header(1, 1, revision), -1), 0.0)
        await asyncio.sleep(1)
    assert (watch.next_revision, watch.resume_revision) == (31, 31 if is_reliable else 5)
    assert store.invoker.asked == 1


# Tokens.


def refused_watches(store: Store, count: int, reason: str = "etcdserver: invalid auth token") -> list[WatchState]:
    """Watches that an open stream has just refused."""
    refusal = WatchReply(Header(revision=10), -1, True, True, cancel_reason=reason)
    watches = [WatchState(WatchOptions(KEYS), 5, lambda: None) for _ in range(count)]
    machine = store.service._stream
    machine.on_open("m1", 0.0)
    for watch in watches:
        store.service.add(watch)
    for _ in watches:
        machine.requests(0.0)
        machine.on_reply(refusal, 0.0)
    return watches


async def test_one_token_is_fetched_for_all_that_were_refused() -> None:
    store = Store()
    watches = refused_watches(store, 100)
    assert {watch.phase for watch in watches} == {Phase.REFUSED}
    await asyncio.sleep(2)
    assert {watch.phase for watch in watches} == {Phase.WAITING}
    assert len(store.invoker.supervisor.renewals) == 1


async def test_without_a_token_watches_end_with_the_error_of_the_server() -> None:
    store = Store()
    store.invoker.supervisor.lacking = AuthenticationFailedError()
    watches = refused_watches(store, 2)
    await asyncio.sleep(2)
    assert [type(watch.error) for watch in watches] == [InvalidTokenError] * 2
    assert all(isinstance(watch.error.__cause__, AuthenticationFailedError) for watch in watches if watch.error)


async def test_without_credentials_a_refused_watch_ends_at_once() -> None:
    store = Store()
    store.invoker.may_renew = False
    (watch,) = refused_watches(store, 1)
    assert isinstance(watch.error, InvalidTokenError)
    assert not store.invoker.supervisor.renewals


DENIED = "etcdserver: permission denied"


@pytest.mark.parametrize("answer", [RangeResult(Header()), PermissionDeniedError()])
async def test_a_denied_permission_is_about_the_token_if_a_read_renews_it(answer: RangeResult | EtcdError) -> None:
    store = Store()

    async def read_page(operation: RangeOp, *, timeout: Timeout, retry: RetryMode | None) -> RangeResult:
        del timeout, retry
        store.invoker.supervisor.has_old_token = True
        assert (operation.keys, operation.count_only, operation.serializable) == (KEYS, True, True)
        if isinstance(answer, EtcdError):
            raise answer
        return answer

    store.service._read_page = read_page
    watches = refused_watches(store, 3, DENIED)
    await asyncio.sleep(1)
    assert {watch.phase for watch in watches} == {Phase.WAITING}
    assert not store.invoker.supervisor.renewals


async def test_a_denied_permission_is_about_the_token_if_a_read_succeeds() -> None:
    """The read went to another member, where the token lives still."""
    store = Store(RangeResult(Header()))
    watches = refused_watches(store, 3, DENIED)
    await asyncio.sleep(2)
    assert len(store.asked) == 1
    assert [type(error) for error in store.invoker.supervisor.renewals] == [PermissionDeniedError]
    assert {watch.phase for watch in watches} == {Phase.WAITING}


async def test_each_watch_is_denied_for_its_own_keys() -> None:
    store = Store(PermissionDeniedError("first"), RangeResult(Header()))
    first, *others = refused_watches(store, 3, DENIED)
    await asyncio.sleep(2)
    assert isinstance(first.error, PermissionDeniedError)
    assert str(first.error.__cause__) == "first"
    assert {watch.phase for watch in others} == {Phase.WAITING}


async def test_each_of_many_denied_watches_ends() -> None:
    store = Store(*(PermissionDeniedError() for _ in range(3)))
    watches = refused_watches(store, 3, DENIED)
    await asyncio.sleep(1)
    assert {type(watch.error) for watch in watches} == {PermissionDeniedError}
    assert not store.invoker.supervisor.renewals


@pytest.mark.parametrize("answers", [[EtcdTimeoutError()], []], ids=["no answer", "a mistake of a user's own"])
async def test_a_failed_check_is_not_repeated_for_each_of_many_watches(answers: list[EtcdError]) -> None:
    store = Store(*answers)
    watches = refused_watches(store, 100, DENIED)
    await asyncio.sleep(1)
    assert len(store.asked) == 1
    assert {type(watch.error) for watch in watches} == {PermissionDeniedError}
    assert {watch.error.__cause__ is not None for watch in watches if watch.error} == {True}


@pytest.mark.skipif(sys.version_info < (3, 12), reason="tasks are never eager")
async def test_a_token_that_is_fetched_without_waiting_is_used() -> None:
    asyncio.get_running_loop().set_task_factory(asyncio.eager_task_factory)  # type: ignore[attr-defined,unused-ignore]
    store = Store()
    store.invoker.supervisor.seconds = 0.0
    for _ in range(2):
        watches = refused_watches(store, 2)
        await asyncio.sleep(0)
        assert {watch.phase for watch in watches} == {Phase.WAITING}
        store.service._stream.on_lost(ConnectionLostError("lost"), 0.0)
        for watch in watches:
            store.service.close(watch)
