"""watch/progress.py: progress requests: when they are sent, and for which watches an answer counts."""

from math import inf

from etcd_aio.types.keys import KeyRange
from etcd_aio.watch.progress import ProgressRequests
from etcd_aio.watch.state import Phase, WatchOptions, WatchState


class Asking(ProgressRequests):
    """Progress requests of watches whose consumers ask."""

    def __init__(self) -> None:
        self.watches: dict[WatchState, None] = {}
        super().__init__(self.watches)

    def ask(self, watch: WatchState) -> None:
        watch.wants_progress = True
        self.watches[watch] = None
        self.ask_now()


def live(progress: ProgressRequests, created_revision: int = 10) -> WatchState:
    watch = WatchState(WatchOptions(KeyRange.of("k")), 5, lambda: None)
    watch.phase = Phase.LIVE
    watch.created_revision = created_revision
    progress.on_created(watch, 0.0)
    return watch


def test_a_request_is_repeated_with_growing_pauses() -> None:
    progress = Asking()
    progress.ask(live(progress))
    now = 100.0
    pauses = []
    for _ in range(6):
        assert progress.due <= now
        assert progress.send(now)
        pauses.append(round(progress.due - now, 3))
        assert progress.is_repeating
        now = progress.due
    assert pauses == [0.1, 0.2, 0.4, 0.8, 1.0, 1.0]
    another = ProgressRequests(progress.watches)
    assert (another.due, another.is_repeating) == (0.0, False)


def test_a_request_waits_until_a_watch_that_asks_is_created() -> None:
    progress = Asking()
    watch = live(progress)
    watch.phase = Phase.WAITING
    progress.ask(watch)
    assert not progress.send(1.0)
    assert progress.due == inf
    progress.on_created(watch, 2.0)
    watch.phase = Phase.LIVE
    assert progress.due == 2.0
    assert progress.send(2.0)


def test_an_answer_counts_for_watches_that_were_created_before_the_request() -> None:
    progress = Asking()
    old = live(progress)
    progress.ask(old)
    assert progress.send(1.0)
    young = live(progress)
    assert progress.answered([old, young], 10) == [old]
    assert progress.answered([old, young], 10) == [old, young], "all earlier requests are answered"


def test_an_answer_counts_for_every_watch_if_the_store_has_moved_on() -> None:
    progress = Asking()
    old = live(progress)
    progress.ask(old)
    assert progress.send(1.0)
    young = live(progress)
    assert progress.answered([old, young], 11) == [old, young]


def test_the_answers_of_a_lost_stream_are_not_awaited() -> None:
    lost = Asking()
    watch = live(lost)
    lost.ask(watch)
    assert lost.send(1.0)
    progress = ProgressRequests(lost.watches)
    assert progress.is_reliable is None
    assert progress.answered([live(progress)], 10) != []
