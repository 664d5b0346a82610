"""once/write_verdicts.py: outcome: what answers, errors and history say about a write."""

import pytest

from etcd_aio import Event, EventType, KeyValue
from etcd_aio.errors import ConnectionLostError, EtcdError, LeaseNotFoundError, NoSpaceError, PermissionDeniedError
from etcd_aio.once.write_verdicts import (
    CREATED,
    Applied,
    Branch,
    Fate,
    WriteRefusal,
    judge,
    judge_error,
    judge_history,
    slot_value,
)


def kv(value: bytes) -> KeyValue:
    return KeyValue(b"slot", value, 3, 9, 4, 7)


@pytest.mark.parametrize("branch", Branch)
def test_the_number_of_the_write_in_the_slot_says_that_it_was_applied(branch: Branch) -> None:
    value = slot_value(12, branch)
    assert judge(12, kv(value)) == Applied(9, branch)
    assert judge_history(12, Event(EventType.PUT, kv(value))) == Applied(9, branch)


@pytest.mark.parametrize("value", [CREATED, b"11:T", b"13:T", b"1:T", b"12:", b"12:X", b"12", b"", b"012:T", b"x"])
def test_another_value_says_that_no_copy_will_be_applied(value: bytes) -> None:
    assert judge(12, kv(value)) is Fate.IN_HISTORY
    assert judge_history(12, Event(EventType.PUT, kv(value))) is Fate.NOT_APPLIED


def test_a_slot_that_is_gone_says_it_too() -> None:
    assert judge(12, None) is Fate.IN_HISTORY
    deleted = Event(EventType.DELETE, KeyValue(b"slot", mod_revision=9))
    assert judge_history(12, deleted) is Fate.NOT_APPLIED


@pytest.mark.parametrize(
    ("error", "maybe_applied", "refusal"),
    [
        (ConnectionLostError(), True, WriteRefusal.OPEN),
        (ConnectionLostError(), False, WriteRefusal.DEFINITE),
        (NoSpaceError(), True, WriteRefusal.OPEN),
        (PermissionDeniedError(), False, WriteRefusal.DEFINITE),
        (LeaseNotFoundError(), False, WriteRefusal.LEASE),
        (LeaseNotFoundError(), True, WriteRefusal.OPEN),
    ],
)
def test_an_error_is_definite_only_if_nothing_may_have_been_applied(
    error: EtcdError, maybe_applied: bool, refusal: WriteRefusal
) -> None:
    error.maybe_applied = maybe_applied
    assert judge_error(error) is refusal
