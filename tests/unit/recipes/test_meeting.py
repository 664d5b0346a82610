"""recipes/barrier/meeting.py: what a participant does next. `property/test_recipes.py` has all orders."""

import pytest

from etcd_aio.recipes.barrier.meeting import Await, Entering, Leaving, MeetingStep, Open, Participant, entering, leaving

A, B, C, D = (Participant(name, revision) for name, revision in ((b"a", 10), (b"b", 20), (b"c", 30), (b"d", 40)))


@pytest.mark.parametrize(
    ("own", "listed", "ready", "expected"),
    [
        (C, [A, B, C], 0, Open((A, B, C))),
        (C, [C, B, A], 5, Open((A, B, C))),  # an old one, in any order
        (C, [A, B, C, D], 0, Open((A, B, C))),  # a later one takes no place
        (B, [A, B, C], 0, MeetingStep.WAIT),
        (B, [A, B, C], 35, MeetingStep.ENTER),
        (D, [A, B, C, D], 0, MeetingStep.TOO_MANY),
        (D, [A, B, C, D], 35, MeetingStep.TOO_MANY),
        (D, [B, C, D], 35, MeetingStep.WAIT),  # the others are leaving: the next meeting begins
        (D, [C, D], 25, MeetingStep.WAIT),  # C came after the meeting, too: two of three
        (C, [A, B], 0, MeetingStep.GONE),
        (C, [A, B, Participant(b"c", 31)], 0, MeetingStep.GONE),  # another key of the same name
    ],
)
def test_entering(own: Participant, listed: list[Participant], ready: int, expected: Entering) -> None:
    assert entering(own, listed, ready, 3) == expected


def test_a_participant_that_has_waited_for_long_opens_a_meeting_that_is_complete() -> None:
    """Its `ready` was deleted, as by an operator."""
    for own in (A, B, C):
        assert entering(own, [A, B, C, D], 0, 3, is_overdue=True) == Open((A, B, C))
    assert entering(B, [A, B], 0, 3, is_overdue=True) is MeetingStep.WAIT
    assert entering(C, [B, C, D], 25, 3, is_overdue=True) is MeetingStep.WAIT, "B is of the meeting before"
    assert entering(D, [A, B, C, D], 0, 3, is_overdue=True) is MeetingStep.TOO_MANY


def test_a_key_between_the_last_participant_and_ready_is_one_too_many() -> None:
    """It was created after the last one has looked, and before that one's `ready` was applied."""
    assert entering(C, [A, B, C], 35, 2, last=20) is MeetingStep.TOO_MANY
    assert [entering(one, [A, B, C], 35, 2, last=20) for one in (A, B)] == [MeetingStep.ENTER, MeetingStep.ENTER]
    assert leaving(A, [A, C], 20) is MeetingStep.LAST, "and is not waited for"


@pytest.mark.parametrize(
    ("own", "listed", "expected"),
    [
        (A, [A], MeetingStep.LAST),
        (A, [A, D], MeetingStep.LAST),  # D belongs to the next meeting
        (A, [A, B, C], Await(C, deletes_own=False)),
        (B, [A, B, C], Await(A, deletes_own=True)),
        (B, [A, C], Await(A, deletes_own=False)),
        (B, [C], Await(C, deletes_own=False)),  # the oldest has died
        (B, [B, C], Await(C, deletes_own=False)),
        (B, [], MeetingStep.LEFT),
        (B, [D], MeetingStep.LEFT),
    ],
)
def test_leaving(own: Participant, listed: list[Participant], expected: Leaving) -> None:
    assert leaving(own, listed, 35) == expected
