"""The watch machines against a model of the server, in any interleaving: what was written is what is delivered."""

import random
from collections import Counter
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from etcd_aio.errors import CompactedError, ConnectionLostError, EtcdError, NoAvailableEndpointsError
from etcd_aio.pb import WatchRequest
from etcd_aio.types import Event, KeyValue, WatchBatch
from etcd_aio.types.keys import KeyRange
from etcd_aio.watch.compaction_resync import KnownKeys, difference
from etcd_aio.watch.progress import ProgressRequests
from etcd_aio.watch.resuming_stream import WatchStream
from etcd_aio.watch.state import EVENT_BYTES, Phase, WatchOptions, WatchState
from tests.support.tiers import nightly_examples
from tests.support.watch_server import ModelStore, ModelStream

KEYS = [b"a", b"b", b"c"]
OPS = [
    *("write", "write", "write many", "delete", "serve", "serve", "serve late", "sync", "sync", "sync all"),
    *("send", "send", "send", "send", "receive", "receive", "receive", "receive", "say", "say", "catch up"),
    *("watch", "close", "take", "take", "take all", "progress", "auto progress", "repeat"),
    *("compact", "lose", "open", "open", "list", "time"),
]


class Consumer:
    """A watch, and what it was given."""

    def __init__(self, model: "Model", key: bytes | None, start: int, options: WatchOptions) -> None:
        self.model = model
        self.key = key
        self.state = WatchState(options, start, lambda: None)
        if options.resync:
            self.state.known = KnownKeys()
        self.first = start  # the first revision of interest, once it is known
        self.batches: list[WatchBatch] = []
        self.there: dict[bytes, int] = {}
        self.revision = 0
        self.is_closed = False
        self.is_begun = False

    def settle(self) -> None:
        """Note where it begins, as soon as it has."""
        if self.state.created_revision and not self.is_begun:
            self.is_begun = True
            self.first = self.first or self.state.taken_revision + 1
            self.revision = self.first - 1
            self.there = self.model.store.state(self.first - 1, self.key)
            if self.state.known is not None and not self.state.known.is_complete:
                self.state.known.begin(tuple(self.there))

    def take(self) -> None:
        self.settle()
        if self.state.pending:
            batch = self.state.take()
            self.model.machine.resume(self.state)
            self.check(batch)

    def check(self, batch: WatchBatch) -> None:
        """Whole revisions, in order, once: after each batch the consumer knows the store of that revision."""
        store = self.model.store
        assert batch.revision >= self.revision
        if not self.batches:  # only now all of that is sure to be written
            self.there = store.state(self.first - 1, self.key)
        written = store.events(self.revision + 1, batch.revision, self.key)
        if any(event.is_resync for event in batch):
            assert all(event.is_resync for event in batch)
        elif batch.events or not self.state.options.resync:  # what came and went meanwhile leaves no difference
            assert batch.events == written
        for event in batch:
            if event.is_put:
                self.there[event.key] = event.revision
            else:
                assert self.there.pop(event.key, None) is not None or not event.is_resync
        assert self.there == store.state(batch.revision, self.key)
        self.revision = batch.revision
        self.batches.append(batch)


class Model:
    """A server, a client, and whatever may happen between them."""

    def __init__(self) -> None:
        self.store = ModelStore()
        self.now = 1000.0
        self.machine = WatchStream(self)
        self.consumers: list[Consumer] = []
        self.stream: ModelStream | None = None
        self.counts: Counter[str] = Counter()
        self.progress_checks = 0

    # As the owner of the machine.

    def wake(self) -> None:
        """Do nothing: what the machine wants is done at random."""

    def call_soon(self, work: Callable[[], None]) -> None:
        work()

    def renew_token(self, error: EtcdError, watch: WatchState) -> bool:
        return False

    def check_store(self, watch: WatchState) -> None:
        """Do nothing: the store never goes back."""

    def check_progress(self, progress: ProgressRequests) -> None:
        self.progress_checks += 1
        progress.is_reliable = bool(self.progress_checks % 2)

    def start_listing(self, watch: WatchState) -> None:
        assert watch.phase is Phase.LISTING

    def stop_listing(self, watch: WatchState) -> None:
        assert watch.phase is Phase.LISTING

    def explain(self, watch: WatchState, error: EtcdError) -> None:
        """Do nothing."""

    def outage_error(self) -> EtcdError:
        return NoAvailableEndpointsError()

    # What may happen. Each gets a number that decides what is left open.

    def do(self, op: str, number: int) -> None:
        self.now += 0.01
        self.counts[op] += 1
        getattr(self, op.replace(" ", "_"))(number)
        for consumer in self.consumers:
            consumer.settle()
        self.check()

    def write(self, number: int) -> None:
        self.store.write((KEYS[number % 3], True))
        if self.stream is not None and number % 2:
            self.stream.catch_up()

    def write_many(self, number: int) -> None:
        self.store.write(*((KEYS[at], bool(number >> at & 1)) for at in range(3)))

    def delete(self, number: int) -> None:
        self.store.write((KEYS[number % 3], False))

    def serve(self, number: int) -> None:
        if self.stream is not None:
            for _ in range(1 + number % 3):
                self.stream.serve()

    def serve_late(self, number: int) -> None:
        del number
        if self.stream is not None:
            self.stream.created_late()

    def sync(self, number: int) -> None:
        if self.stream is not None and self.stream.watchers:
            watchers = list(self.stream.watchers.values())
            self.stream.sync(watchers[number % len(watchers)], 1 + number % 4)

    def sync_all(self, number: int) -> None:
        if self.stream is not None:
            for watcher in tuple(self.stream.watchers.values()):
                self.stream.sync(watcher, 1 + number % 20)

    def send(self, number: int) -> None:
        if self.stream is not None:
            self.stream.send(control_first=number % 3 > 0, cuts=number)

    def receive(self, number: int) -> None:
        if self.stream is not None:
            for _ in range(1 + number % 3):
                if self.stream.wire:
                    self.machine.on_reply(self.stream.wire.popleft(), self.now)
                    self.check()

    def say(self, number: int) -> None:
        del number
        if self.stream is not None:
            self.stream.inbox.extend(self.requests())

    def requests(self) -> list[WatchRequest]:
        found = self.machine.requests(self.now)
        ages = [one for one in found if one.create_request is not None]
        self.counts["created"] += len(ages)
        return found

    def catch_up(self, number: int) -> None:
        del number
        if self.stream is not None:
            self.stream.catch_up()

    def watch(self, number: int) -> None:
        if len(self.consumers) > 6:
            return
        key = None if number % 3 else KEYS[number % 2]
        start = number // 7 % (self.store.revision + 3) if number % 2 else 0
        keys = KeyRange.of(all_keys=True) if key is None else KeyRange.of(key)
        options = WatchOptions(
            keys,
            progress_notify=bool(number & 4),
            fragment=(None, False, True)[number // 8 % 3],
            resync=bool(number & 16) and (not start or self.store.compacted < start <= self.store.revision + 1),
            max_pending=EVENT_BYTES * (3 + number % 6),
        )
        consumer = Consumer(self, key, start, options)
        self.consumers.append(consumer)
        self.machine.add(consumer.state, self.now)

    def close(self, number: int) -> None:
        if self.consumers and number % 3 == 0:
            consumer = self.consumers[number % len(self.consumers)]
            consumer.is_closed = True
            self.machine.close(consumer.state)

    def take(self, number: int) -> None:
        if self.consumers:
            self.consumers[number % len(self.consumers)].take()

    def take_all(self, number: int) -> None:
        for consumer in self.consumers[number % 3 :]:
            while consumer.state.pending:
                consumer.take()

    def progress(self, number: int) -> None:
        if self.consumers:
            consumer = self.consumers[number % len(self.consumers)]
            if consumer.state.phase is not Phase.ENDED:
                self.machine.request_progress(consumer.state)

    def auto_progress(self, number: int) -> None:
        if self.stream is not None and self.stream.watchers:
            watchers = list(self.stream.watchers.values())
            self.stream.progress(watchers[number % len(watchers)])

    def repeat(self, number: int) -> None:
        """The server repeats a message."""
        if self.stream is not None and number % 4 == 0:
            for reply in tuple(self.stream.channel)[:1]:
                if reply.events:
                    self.stream.channel.appendleft(reply)

    def compact(self, number: int) -> None:
        if number % 4 == 0:
            # What a consumer is to be checked against is kept; the server does not look at it any more.
            self.store.compacted = max(self.store.compacted, self.store.revision - number % 3)

    def lose(self, number: int) -> None:
        if self.stream is not None and number % 3 == 0:
            self.stream = None
            self.machine.on_lost(ConnectionLostError("lost"), self.now)

    def open(self, number: int) -> None:
        if self.stream is None and self.machine.is_needed:
            self.stream = ModelStream(self.store, max(self.store.revision - number % 3, 1), number % 5 == 0)
            self.machine.on_open("m1", self.now)
            self.say(number)

    def list(self, number: int) -> None:
        del number
        for consumer in self.consumers:
            state = consumer.state
            if state.phase is Phase.LISTING:
                revision = self.store.revision
                there = self.store.state(revision, consumer.key)
                changed = [KeyValue(key, mod_revision=at) for key, at in there.items() if at >= state.resume_revision]
                assert state.known is not None
                gone = state.known.replace(there)
                self.machine.listed(state, difference(changed, gone, revision, hides_deletes=False), revision)

    def time(self, number: int) -> None:
        self.now += number % 4
        if self.machine.due <= self.now:
            reason = self.machine.on_time(self.now)
            if reason is not None:
                assert "sent nothing" in reason
                self.lose(0)

    # What must hold all the time.

    def check(self) -> None:
        machine, stream = self.machine, self.machine._stream
        live = {} if stream is None else stream.live
        assert (stream is None) == (self.stream is None)
        for consumer in self.consumers:
            state = consumer.state
            assert (state.phase is Phase.LIVE) == (live.get(state.watch_id) is state)
            assert (state.phase is Phase.ENDED) == (state not in machine._watches.all)
            assert state.phase is not Phase.CREATING or (stream and state in stream.creations.unanswered.values())
            assert state.phase is not Phase.WAITING or stream is None or state in stream.waiting
            assert not state.next_revision or state.next_revision >= state.resume_revision > state.seen
            assert state.pending_events == sum(len(batch) for batch, _ in state.pending)
            assert state.pending_bytes == sum(size for _, size in state.pending)
            assert not consumer.is_closed or state.phase is Phase.ENDED
        assert all(watch.phase is Phase.LIVE for watch in live.values())

    def heal(self) -> None:
        """From now on everything works, and it has the time it needs."""
        for round_ in range(400):
            self.now += 0.5
            if self.stream is None:
                self.open(0)
            self.catch_up(0)
            self.say(0)
            if self.stream is not None:
                while self.stream.inbox:
                    self.stream.serve()
                self.sync_all(19)
                while self.stream.control or self.stream.channel:
                    self.stream.send(control_first=bool(round_ % 2), cuts=round_)
                while self.stream.wire:
                    self.receive(0)
            for consumer in self.consumers:
                consumer.settle()
            self.list(0)
            for consumer in self.consumers:
                while consumer.state.pending:
                    consumer.take()
            if round_ >= 8 and self.is_settled():
                self.check_server()
                return
        raise AssertionError("it never comes to rest")

    def check_server(self) -> None:
        """The server has a watcher for each watch, and no other."""
        if self.machine._stream is not None and self.stream is not None:
            assert set(self.stream.watchers) == set(self.machine._stream.live)

    def is_settled(self) -> bool:
        live = [one for one in self.consumers if one.state.phase is not Phase.ENDED]
        last = self.store.revision
        return all(
            one.state.phase is Phase.LIVE
            and not one.state.wants_progress
            and not self.store.events(max(one.revision + 1, one.first), last, one.key)
            for one in live
        )

    def judge(self) -> None:
        for consumer in self.consumers:
            state = consumer.state
            if consumer.is_closed:
                continue
            if state.error is not None:
                assert isinstance(state.error, CompactedError)
                assert not state.options.resync
                assert state.next_revision < state.error.compact_revision
                continue
            delivered: list[Event] = [event for batch in consumer.batches for event in batch]
            if not state.options.resync:
                assert tuple(delivered) == self.store.events(consumer.first, self.store.revision, consumer.key)
            if consumer.there or consumer.revision >= consumer.first:
                assert consumer.there == self.store.state(
                    max(self.store.revision, consumer.revision), consumer.key
                ) or not self.store.events(consumer.first, self.store.revision, consumer.key)


@nightly_examples(1000)
@given(st.lists(st.tuples(st.sampled_from(OPS), st.integers(0, 1023)), max_size=150))
def test_what_is_written_is_delivered_in_order_once_and_by_whole_revisions(script: list[tuple[str, int]]) -> None:
    model = Model()
    model.watch(2)
    model.open(0)
    for op, number in script:
        model.do(op, number)
    model.heal()
    model.judge()


@pytest.mark.parametrize("seed", range(60))
def test_long_histories(seed: int) -> None:
    chance = random.Random(seed)
    model = Model()
    model.open(0)
    for _ in range(600):
        model.do(chance.choice(OPS), chance.randrange(1024))
    model.heal()
    model.judge()


def test_the_long_histories_meet_everything() -> None:
    met: Counter[str] = Counter()
    for seed in range(60):
        chance = random.Random(seed)
        model = Model()
        model.open(0)
        for _ in range(600):
            model.do(chance.choice(OPS), chance.randrange(1024))
        for consumer in model.consumers:
            state = consumer.state
            met["pauses"] += state.pauses
            met["reconnects"] += state.reconnects
            met["marks"] += sum(not batch for batch in consumer.batches)
            met["resyncs"] += any(event.is_resync for batch in consumer.batches for event in batch)
            met["compacted"] += state.error is not None
            met["events"] += sum(map(len, consumer.batches))
            met["several revisions"] += sum(len({event.revision for event in batch}) > 1 for batch in consumer.batches)
    print(met)
    assert all(
        met[what] > 20 for what in ("pauses", "reconnects", "marks", "resyncs", "compacted", "several revisions")
    )
