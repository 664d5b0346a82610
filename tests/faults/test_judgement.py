"""The judges of histories: a good one has no violation, and each thing that can be wrong is seen. No servers."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from math import inf

import pytest

from tests.faults.account import (
    Body,
    Counted,
    Leader,
    Standstill,
    keys_of,
    leaders,
    left_over,
    miscounted,
    misobserved,
    miswritten,
    overlapping,
    unowned,
)
from tests.faults.ownership import Ownership, Record
from tests.faults.store import Change, IncompleteError, checked


class Store:
    """Writes a history: each call takes the next revision."""

    def __init__(self) -> None:
        self.changes: list[Change] = []
        self._created: dict[str, tuple[int, int]] = {}

    def put(self, key: str, value: str = "") -> int:
        revision = len(self.changes) + 1
        created, version = self._created.get(key, (revision, 0))
        self._created[key] = created, version + 1
        self.changes.append(Change(revision, key, value, created, version + 1))
        return revision

    def delete(self, key: str) -> None:
        created, _ = self._created.pop(key)
        self.changes.append(Change(len(self.changes) + 1, key, None, created))

    def record(self, key: str, token: int, step: str = "enter", claim: str = "") -> str:
        _, kind, name, _ = key.split("/", 3)
        text = Record(claim or key, kind, name, key, token, step).text()
        self.put(f"faults/record/{kind}/{name}", text)
        return text

    def rules(self) -> list[str]:
        return [violation.rule for violation in Ownership.judge(checked(self.changes)).violations]


def hold(store: Store, key: str, token: int) -> None:
    for step in ("enter", "work", "leave"):
        store.record(key, token, step)


A, B, C = (f"faults/lock/x/{letter}" for letter in "abc")


# The store.


def test_a_history_with_a_gap_proves_nothing() -> None:
    store = Store()
    for _ in range(3):
        store.put(A)
    checked(store.changes)
    with pytest.raises(IncompleteError, match="version 3 at 3 after 1"):
        checked([store.changes[0], store.changes[2]])
    with pytest.raises(IncompleteError, match="was not there"):
        checked([Change(5, A, None, 2)])


# Locks.


def test_one_after_the_other_is_right() -> None:
    store = Store()
    first, second = store.put(A), store.put(B)
    hold(store, A, first)
    store.delete(A)
    hold(store, B, second)
    store.delete(B)
    third = store.put(A)
    hold(store, A, third)
    judged = Ownership.judge(checked(store.changes))
    assert judged.violations == []
    assert judged.entered == {"lock": 3}
    assert len(judged.writes) == 9


def test_entering_before_the_older_key_is_gone() -> None:
    store = Store()
    store.put(A)
    second = store.put(B)
    store.record(B, second)
    assert store.rules() == ["entered before its turn"]


def test_two_inside() -> None:
    store = Store()
    first, second = store.put(A), store.put(B)
    store.record(A, first)
    store.record(B, second)
    assert store.rules() == ["entered before its turn", "two inside"]


def test_a_write_after_the_ownership() -> None:
    store = Store()
    first = store.put(A)
    store.record(A, first)
    store.delete(A)
    store.record(A, first, "work")
    assert store.rules() == ["fenced write without the key"]


def test_a_write_of_an_earlier_life_of_the_key() -> None:
    store = Store()
    first = store.put(A)
    store.record(A, first)
    store.delete(A)
    store.put(A)
    store.record(A, first, "work")
    assert store.rules() == ["fenced write without the key"]


def test_a_release_of_the_next_holder_is_seen_by_who_enters_beside_it() -> None:
    store = Store()
    first, second, third = store.put(A), store.put(B), store.put(C)
    hold(store, A, first)
    store.delete(A)
    store.record(B, second)
    store.delete(B)  # by another client
    store.record(C, third)
    store.record(B, second, "work")
    assert store.rules() == ["fenced write without the key"]


def test_tokens_that_do_not_grow() -> None:
    store = Store()
    first, second = store.put(A), store.put(B)
    store.delete(A)
    hold(store, B, second)
    store.delete(B)
    store.record(A, first)
    assert "fenced write without the key" in store.rules()
    again = Store()
    first = again.put(A)
    again.record(A, first)
    again.record(A, first, claim="another")
    assert again.rules() == ["tokens grow"]


def test_a_write_that_was_applied_twice() -> None:
    store = Store()
    first = store.put(A)
    text = store.record(A, first, "work")
    store.put("faults/record/lock/x", text)
    assert store.rules() == ["written twice"]


def test_keys_of_a_nested_name_are_another_lock() -> None:
    store = Store()
    store.put("faults/lock/x/y/a")
    first = store.put(A)
    store.record(A, first)
    assert store.rules() == []


def test_answers_that_the_store_contradicts() -> None:
    writes = {"w1": 5, "w2": 6}
    assert list(miswritten(writes, {"w1": 5}, ["w3"])) == []
    found = list(miswritten(writes, {"w1": 7, "w4": 8}, ["w2"]))
    assert [violation.rule for violation in found] == ["acknowledged, but not written"] * 2 + ["refused, but written"]


# Readers and writers.


READ1, READ2 = "faults/rwlock/x/read/1", "faults/rwlock/x/read/2"
WRITE1, WRITE2 = "faults/rwlock/x/write/1", "faults/rwlock/x/write/2"


def test_readers_share_and_a_writer_comes_after_them() -> None:
    store = Store()
    first, second, third = store.put(READ1), store.put(READ2), store.put(WRITE1)
    store.record(READ2, second)
    store.record(READ1, first)
    store.delete(READ1)
    store.record(READ2, second, "leave")
    store.delete(READ2)
    hold(store, WRITE1, third)
    store.delete(WRITE1)
    fourth = store.put(READ1)
    hold(store, READ1, fourth)
    assert store.rules() == []


@pytest.mark.parametrize(("first", "second"), [(READ1, WRITE1), (WRITE1, READ1), (WRITE1, WRITE2)])
def test_a_writer_is_alone(first: str, second: str) -> None:
    store = Store()
    tokens = store.put(first), store.put(second)
    store.record(first, tokens[0])
    store.record(second, tokens[1])
    assert store.rules() == ["entered before its turn", "two inside"]


def test_a_reader_does_not_overtake_a_waiting_writer() -> None:
    store = Store()
    store.put(READ1)
    store.put(WRITE1)
    third = store.put(READ2)
    store.record(READ2, third)
    assert store.rules() == ["entered before its turn"]


# Semaphores.


def permit(store: Store, number: int, permits: int = 1, limit: int = 2) -> tuple[str, int]:
    key = f"faults/semaphore/x/{number}"
    return key, store.put(key, json.dumps({"limit": limit, "permits": permits, "held": False}))


def test_permits_up_to_the_limit() -> None:
    store = Store()
    first, second, third = (permit(store, number) for number in range(3))
    store.record(*second)
    store.record(*first)
    store.delete(first[0])
    store.record(*third)
    assert store.rules() == []


def test_one_permit_too_many() -> None:
    store = Store()
    first, second, third = (permit(store, number) for number in range(3))
    for each in (first, second, third):
        store.record(*each)
    assert store.rules() == ["entered before its turn", "too many permits"]


def test_a_large_request_is_not_overtaken() -> None:
    store = Store()
    first, _, third = permit(store, 1), permit(store, 2, permits=2), permit(store, 3)
    store.record(*first)
    store.record(*third)
    assert store.rules() == ["entered before its turn"]


# Bodies.


def body(name: str, began: float, ended: float, process: str = "", kind: str = "lock", key: str = "k") -> Body:
    return Body(name, kind, "x", key, 1, process or name, began, ended, permits=1, limit=2)


def overlaps(bodies: Sequence[Body], *standstills: Standstill) -> list[str]:
    return [violation.text for violation in overlapping(bodies, standstills)]


def test_bodies_in_turn_do_not_overlap() -> None:
    assert overlaps([body("a", 0, 1), body("b", 1, 2), body("c", 2, inf)]) == []


def test_bodies_that_overlap() -> None:
    assert overlaps([body("a", 0, 1.5), body("b", 1, 2)]) == ["a and b for 0.500 s"]
    assert len(overlaps([body("a", 0, inf), body("b", 1, 2), body("c", 2, 3)])) == 2


def test_an_overlap_that_is_too_short_proves_nothing() -> None:
    assert overlaps([body("a", 0, 1.09), body("b", 1, 2)]) == []
    assert len(overlaps([body("a", 0, 1.11), body("b", 1, 2)])) == 1


def test_the_time_of_a_standstill_does_not_count() -> None:
    bodies = [body("a", 0, 5), body("b", 3, 4.5)]
    assert overlaps(bodies, Standstill("a", 1, 4.5)) == []
    assert overlaps(bodies, Standstill("a", 2, 3.5), Standstill("a", 3.5, 4.45)) == []
    assert overlaps(bodies, Standstill("a", 1, 2.9)) == ["a and b for 1.500 s"]  # it was over by then
    assert overlaps(bodies, Standstill("a", 1, 4.0)) == ["a and b for 0.500 s"]
    assert overlaps(bodies, Standstill("b", 1, 5)) == ["a and b for 1.500 s"]


def test_a_key_that_an_operator_deletes_is_missed_a_while_later() -> None:
    bodies = [body("a", 0, 3.6, key=A), body("b", 3, 5, key=B), body("c", 5, 9, key=C), body("d", 8, 9, key=A)]
    assert overlaps(bodies[:2]) == ["a and b for 0.600 s"]
    assert list(overlapping(bodies[:2], (), {A})) == []
    assert [violation.text for violation in overlapping(bodies, (), {A, C})] == ["c and d for 1.000 s"]


def test_all_keys_of_a_lease_that_an_operator_revokes_are_missed() -> None:
    keys = [f"faults/{line}/5a" for line in ("lock/x", "semaphore/a", "rwlock/x/write")]
    others = ["faults/lock/x/5b", "faults/end/end"]
    changes = [Change(number, key, "", number) for number, key in enumerate((*keys, *others), 2)]
    assert keys_of({0x5A}, changes) == set(keys)


def test_a_body_whose_key_never_owned() -> None:
    store = Store()
    store.put(A)
    store.put(B)  # is deleted before A is, so it never owns
    third = store.put(C)
    store.delete(B)
    store.delete(A)
    owned = Ownership.judge(checked(store.changes)).owned
    assert owned == {(A, 1), (C, third)}
    bodies = [body("a", 0, 1, key=A), replace(body("b", 1, 2, key=B), token=2)]
    assert [violation.text.split(":")[0] for violation in unowned(bodies, owned)] == ["b"]


def test_an_older_proclamation_that_comes_back() -> None:
    store = Store()
    key = "faults/election/x/1"
    for value in ("w1", "c-1 1", "c-1 3"):
        store.put(key, value)
    assert store.rules() == []
    store.put(key, "c-1 2")
    assert store.rules() == ["an older proclamation came back"]


def test_bodies_of_readers_and_of_permits() -> None:
    readers = [body("a", 0, 3, kind="rwlock", key=READ1), body("b", 1, 2, kind="rwlock", key=READ2)]
    assert overlaps(readers) == []
    assert len(overlaps([*readers, body("c", 2.5, 4, kind="rwlock", key=WRITE1)])) == 1
    permits = [body(name, 0, 3, kind="semaphore") for name in "ab"]
    assert overlaps(permits) == []
    assert len(overlaps([*permits, body("c", 2, 4, kind="semaphore")])) == 1


# Observers.


def election() -> tuple[list[Change], list[Leader | None]]:
    store = Store()
    one, two = "faults/election/x/1", "faults/election/x/2"
    store.put(one, "v1")
    store.put(two, "w1")
    store.put(one, "v2")
    store.delete(one)
    store.put(two, "w1")  # the same value again: nothing to tell
    store.delete(two)
    store.put(one, "v3")
    store.delete(one)
    truth = [(one, 1, "v1"), (one, 1, "v2"), (two, 2, "w1"), None, (one, 7, "v3"), None]
    return store.changes, truth


def observed(
    told: Iterable[Leader | None], truth: Sequence[Leader | None], is_gapless: bool = True, is_whole: bool = True
) -> list[str]:
    found = misobserved(list(told), truth, "o", is_gapless=is_gapless, is_whole=is_whole)
    return [violation.rule for violation in found]


def test_the_leaders_of_a_history() -> None:
    changes, truth = election()
    assert leaders(changes, "x") == truth


def test_what_was_observed_from_any_point_on() -> None:
    _, truth = election()
    assert observed([None, *truth], truth) == []
    for start in range(len(truth)):
        assert observed(truth[start:], truth) == []
        assert observed(truth[:start], truth, is_whole=False) == []


def test_what_was_missed_or_wrong_or_told_twice() -> None:
    _, truth = election()
    assert observed(truth[:-1], truth) == ["missed by an observer"]
    assert observed([truth[0], *truth[2:]], truth) == ["observed wrongly"]
    assert observed([truth[0], *truth[2:]], truth, is_gapless=False) == []
    assert observed([("faults/election/x/2", 2, "w0"), *truth[2:]], truth, is_gapless=False) == ["observed wrongly"]
    assert observed([truth[0], truth[0], *truth[1:]], truth) == ["observed twice"]
    assert observed([truth[2], truth[1]], truth, is_gapless=False) == ["observed wrongly"]
    assert observed(truth[:-1], truth, is_gapless=False) == ["missed by an observer"]


# Counters.


def count(*made: tuple[int, str]) -> list[Change]:
    store = Store()
    for number, operation in made:
        store.put("faults/counter/x", json.dumps([number, operation]))
    return store.changes


def test_every_increment_once() -> None:
    changes = count((1, "a"), (2, "b"))
    counted = [Counted("x", "a", "applied", 1), Counted("x", "b", "unknown"), Counted("x", "c", "not applied")]
    assert list(miscounted(changes, counted)) == []


@pytest.mark.parametrize(
    ("made", "counted", "rule"),
    [
        ([(1, "a"), (2, "a")], Counted("x", "a", "applied", 1), "counted twice"),
        ([(1, "a"), (3, "b")], Counted("x", "a", "applied", 1), "a counter skips"),
        ([(1, "a"), (1, "b")], Counted("x", "a", "applied", 1), "a counter skips"),
        ([(1, "a")], Counted("x", "b", "applied", 2), "counted wrongly"),
        ([(1, "a")], Counted("x", "a", "applied", 2), "counted wrongly"),
        ([(1, "a")], Counted("x", "a", "not applied"), "counted wrongly"),
    ],
)
def test_an_increment_that_was_lost_or_made_twice(made: list[tuple[int, str]], counted: Counted, rule: str) -> None:
    assert rule in [violation.rule for violation in miscounted(count(*made), [counted])]


def test_a_key_that_was_left() -> None:
    assert [violation.text for violation in left_over([A])] == [A]
