"""concurrency/permits.py: the sums of random histories, and single verdicts."""

import random
from dataclasses import dataclass

import pytest

from etcd_aio.concurrency.permits import PermitRequest, PermitVerdict, is_free, is_marked, judge, judge_ends, parse
from etcd_aio.errors import LockError

SEEDS = [*range(60), *(pytest.param(seed, marks=pytest.mark.nightly) for seed in range(60, 300))]


@dataclass(frozen=True)
class Listed:
    key: bytes
    value: bytes
    create_revision: int
    lease: int = 1
    mod_revision: int = 0


def kv(number: int, permits: int = 1, limit: int = 3, *, is_held: bool = False) -> Listed:
    return Listed(b"s/%d" % number, PermitRequest(limit, permits).value(is_held=is_held), number)


@pytest.mark.parametrize("seed", SEEDS)
def test_what_is_held_is_never_more_than_the_limit(seed: int) -> None:
    """Contenders come, look at any time, and go at any time, also without knowing that they are gone."""
    chance = random.Random(seed)
    limit = chance.randrange(1, 6)
    request = {}
    store: dict[int, Listed] = {}
    holding: set[int] = set()
    for revision in range(1, 80):
        match chance.randrange(4):
            case 0:
                request[revision] = PermitRequest(limit, chance.randrange(1, limit + 1))
                store[revision] = kv(revision, request[revision].permits, limit)
            case 1 if store:
                gone = chance.choice(list(store))
                del store[gone]
                holding.discard(gone)
            case _ if store:
                looking = chance.choice(list(store))
                found = [one for one in store.values() if chance.random() < 0.5 or one.create_revision <= looking]
                chance.shuffle(found)
                verdict = judge(found, b"s/%d" % looking, looking, request[looking])
                assert verdict.is_there
                assert verdict.is_held or looking not in holding, "once held, it stays held"
                if verdict.is_held:
                    holding.add(looking)
                else:
                    older = [one for one in store if one < looking]
                    assert verdict.ahead is store[max(older)]
            case _:
                pass
        assert sum(request[one].permits for one in holding) <= limit
        for one in store:
            if all(other in holding for other in store if other < one):
                assert judge(store.values(), b"s/%d" % one, one, request[one]).is_head


@pytest.mark.parametrize("seed", SEEDS)
def test_contenders_with_another_limit_neither_hold_beside_others_nor_drive_them_away(seed: int) -> None:
    """Contenders look at any time, as above; who gets an error leaves, at once or some time later."""
    chance = random.Random(seed)
    request: dict[int, PermitRequest] = {}
    store: dict[int, Listed] = {}
    holding: set[int] = set()
    leaving: set[int] = set()

    def look(one: int) -> None:
        try:
            verdict = judge(store.values(), b"s/%d" % one, one, request[one])
        except LockError:
            assert one not in holding
            assert request[min(store)].limit != request[one].limit, "it agrees with the oldest"
            leaving.add(one)
        else:
            assert verdict.is_held or one not in holding, "once held, it stays held"
            if verdict.is_held:
                holding.add(one)

    for revision in range(1, 80):
        match chance.randrange(4):
            case 0:
                request[revision] = PermitRequest(chance.choice((2, 2, 2, 3)), chance.randrange(1, 3))
                store[revision] = kv(revision, request[revision].permits, request[revision].limit)
                look(revision)  # the txn that creates a key lists the others
            case 1 if store:
                gone = chance.choice(sorted(leaving) or list(store))
                del store[gone]
                holding.discard(gone)
                leaving.discard(gone)
            case _ if len(store) > len(leaving):
                look(chance.choice([one for one in store if one not in leaving]))
            case _:
                pass
        assert len({request[one].limit for one in holding}) <= 1
        assert sum(request[one].permits for one in holding) <= 3
        assert all(sum(request[one].permits for one in holding) <= request[one].limit for one in holding)
    while len(store) > len(leaving):  # nothing waits for ever
        for one in sorted(store):
            if one not in leaving:
                look(one)
        for one in leaving | holding:
            store.pop(one)
        leaving.clear()
        holding.clear()


def test_the_first_ones_hold_and_the_next_is_the_head() -> None:
    found = [kv(4), kv(1), kv(2, 2), kv(3)]
    assert judge(found, b"s/2", 2, PermitRequest(3, 2)) == PermitVerdict(True, True, found[1], True)
    assert judge(found, b"s/3", 3, PermitRequest(3, 1)) == PermitVerdict(True, False, found[2], True)
    assert judge(found, b"s/4", 4, PermitRequest(3, 1)) == PermitVerdict(True, False, found[3], False)
    assert judge(found[1:2], b"s/1", 1, PermitRequest(3, 1)) == PermitVerdict(True, True, None, True)


def test_a_key_that_is_gone_or_another_is_not_there() -> None:
    assert not judge([kv(1)], b"s/2", 2, PermitRequest(3, 1)).is_there
    assert not judge([kv(1), kv(5)], b"s/2", 2, PermitRequest(3, 1)).is_there
    assert not judge([Listed(b"s/2", kv(9).value, 9)], b"s/2", 2, PermitRequest(3, 1)).is_there


@pytest.mark.parametrize(
    "value", [b"", b"host 1 task", b"[]", b'{"limit": 3}', b'{"limit": "3", "permits": 1}', b"\xff"]
)
def test_keys_that_are_not_of_a_semaphore_are_refused(value: bytes) -> None:
    with pytest.raises(LockError, match="not one of a semaphore"):
        parse(Listed(b"s/1", value, 1), PermitRequest(3, 1))
    assert not is_marked(Listed(b"s/1", value, 1))


def test_another_limit_is_refused() -> None:
    with pytest.raises(LockError, match=r"the limit is 4 here, and 3 for the contender b's/1'"):
        judge([kv(1), kv(2, limit=4)], b"s/2", 2, PermitRequest(4, 1))


def test_another_limit_than_that_of_the_oldest_is_waited_for() -> None:
    found = [kv(1), kv(2, limit=4), kv(3), kv(4), kv(5, limit=2)]
    assert judge(found, b"s/1", 1, PermitRequest(3, 1)) == PermitVerdict(True, True, None, True)
    assert judge(found, b"s/3", 3, PermitRequest(3, 1)) == PermitVerdict(True, False, found[1], False)
    assert judge(found, b"s/4", 4, PermitRequest(3, 1)) == PermitVerdict(True, False, found[2], False)
    with pytest.raises(LockError, match="the limit is 2 here, and 3 for"):
        judge(found, b"s/5", 5, PermitRequest(2, 1))
    with pytest.raises(LockError, match="the limit is 3 here, and 4 for"):
        judge(found[1:], b"s/3", 3, PermitRequest(3, 1))
    assert not is_free(found, PermitRequest(3, 1))
    assert is_free(found[:1], PermitRequest(3, 1))
    with pytest.raises(LockError, match="the limit is 4 here, and 3 for"):
        is_free(found, PermitRequest(4, 1))


def test_a_mark_is_in_the_value() -> None:
    assert is_marked(kv(1, is_held=True))
    assert not is_marked(kv(1))


@pytest.mark.parametrize("seed", SEEDS)
def test_both_ends_of_a_line_tell_what_all_of_it_does(seed: int) -> None:
    chance = random.Random(seed)
    limit = chance.randrange(1, 6)
    request = {
        number: PermitRequest(limit, chance.randrange(1, limit + 1)) for number in chance.sample(range(1, 60), 20)
    }
    store = {number: kv(number, wanted.permits, limit) for number, wanted in sorted(request.items())}
    for own, wanted in request.items():
        older = [store[number] for number in store if number <= own]
        whole = judge(older, b"s/%d" % own, own, wanted)
        for first in range(1, len(older)):
            for last in range(1, 4):
                verdict = judge_ends(older[:first], older[-last:], b"s/%d" % own, own, wanted)
                assert verdict in (None, whole)
        told = judge_ends(older[: limit + 1], older[-2:], b"s/%d" % own, own, wanted)
        assert told == whole, "this much tells in any case"
    assert judge_ends(store.values(), store.values(), b"s/0", 0, PermitRequest(limit, 1)) == PermitVerdict(False)
