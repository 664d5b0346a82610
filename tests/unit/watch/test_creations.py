"""watch/creations.py: which watch an answer is about."""

import pytest

from etcd_aio.types import WatchReply
from etcd_aio.types.keys import KeyRange
from etcd_aio.watch.creations import FIRST_ID, WINDOW, Creations, MixedUp
from etcd_aio.watch.state import WatchOptions, WatchState


def watch() -> WatchState:
    return WatchState(WatchOptions(KeyRange.of("k")), 0, lambda: None)


def created(watch_id: int) -> WatchReply:
    return WatchReply(watch_id=watch_id, created=True)


def refused(watch_id: int) -> WatchReply:
    return WatchReply(watch_id=watch_id, created=True, canceled=True)


def test_a_peer_that_takes_ids_gets_many_at_once_on_this_stream() -> None:
    creations = Creations()
    first = watch()
    assert creations.begin(first) == FIRST_ID
    assert not creations.may_begin
    assert creations.answered(created(FIRST_ID)) is first
    for _ in range(WINDOW):
        assert creations.may_begin
        creations.begin(watch())
    assert not creations.may_begin
    another = Creations()
    another.begin(first)
    assert (another.may_begin, another.oldest) == (False, first)


@pytest.mark.parametrize("reply", [created(0), created(7), refused(-1), refused(0)])
def test_any_answer_is_about_the_only_unanswered_creation(reply: WatchReply) -> None:
    creations = Creations()
    one = watch()
    creations.begin(one)
    assert creations.answered(reply) is one
    assert creations.answered(reply) is None
    creations.begin(one)
    assert not creations.may_begin


def pipelined() -> tuple[Creations, list[WatchState]]:
    creations = Creations()
    creations.takes_ids = True
    watches = [watch() for _ in range(3)]
    assert [creations.begin(one) for one in watches] == [FIRST_ID, FIRST_ID + 1, FIRST_ID + 2]
    return creations, watches


@pytest.mark.parametrize("watch_id", [-1, 0, FIRST_ID])
def test_a_refusal_is_about_the_oldest(watch_id: int) -> None:
    creations, watches = pipelined()
    assert creations.answered(refused(watch_id)) is watches[0]
    assert creations.answered(created(FIRST_ID + 1)) is watches[1]


@pytest.mark.parametrize("reply", [created(FIRST_ID + 1), refused(FIRST_ID + 2), created(0), created(FIRST_ID + 9)])
def test_an_answer_that_does_not_say_which_watch_it_is_about_is_refused(reply: WatchReply) -> None:
    creations, _ = pipelined()
    with pytest.raises(MixedUp):
        creations.answered(reply)


def test_careful_creations_go_one_by_one_whatever_the_peer_is() -> None:
    creations = Creations(is_careful=True)
    creations.takes_ids = True
    for number in range(2):
        assert creations.may_begin
        creations.begin(watch())
        assert not creations.may_begin
        creations.answered(created(FIRST_ID + number))


def test_a_peer_that_refuses_ids_gets_creations_without_them_one_by_one() -> None:
    creations = Creations()
    first, second = watch(), watch()
    assert creations.begin(first) == FIRST_ID
    assert creations.answered(refused(-1)) is first
    creations.sends_ids = False
    for one, watch_id in ((first, 1), (second, 2)):
        assert creations.may_begin
        assert creations.begin(one) == 0
        assert not creations.may_begin
        assert creations.answered(created(watch_id)) is one
