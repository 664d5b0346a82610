"""once/slot.py: its table has a way out of every state but the last, and its numbers."""

import pytest

from etcd_aio.once.slot import _NEXT, Slot, SlotState, Transition


def test_every_state_is_left_and_every_transition_is_used() -> None:
    assert {state for state, _ in _NEXT} == set(SlotState) - {SlotState.GONE}
    assert {transition for _, transition in _NEXT} == set(Transition)


def test_a_write_has_a_number_and_its_revision_is_the_next_condition() -> None:
    slot = Slot(b"k", 7)
    slot.move(Transition.CREATED, 5)
    assert (slot.state, slot.number, slot.revision) == (SlotState.FREE, 0, 5)
    slot.move(Transition.TAKEN)
    slot.move(Transition.APPLIED, 9)
    assert (slot.state, slot.number, slot.revision) == (SlotState.FREE, 1, 9)
    slot.move(Transition.TAKEN)
    slot.move(Transition.REFUSED)
    assert (slot.state, slot.number, slot.revision) == (SlotState.FREE, 2, 9)
    assert repr(slot) == "<Slot b'k' free n=2 m=9>"


def test_what_cannot_happen_is_a_bug() -> None:
    with pytest.raises(KeyError):
        Slot(b"k", 7).move(Transition.TAKEN)
