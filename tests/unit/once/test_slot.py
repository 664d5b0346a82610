"""once/slot.py: its table has a way out of every state but the last, and its numbers."""

import pytest

from etcd_aio.once.slot import Slot, SlotState


def test_only_the_table_leads_from_state_to_state() -> None:
    allowed = []
    for before in SlotState:
        for after in SlotState:
            slot = Slot(b"k", 7)
            slot.state = before
            try:
                slot.move(after)
            except RuntimeError:
                assert slot.state is before
            else:
                allowed.append((before, after))
    assert len(allowed) == 11
    assert {before for before, _ in allowed} == set(SlotState) - {SlotState.GONE}
    assert {after for _, after in allowed} == set(SlotState) - {SlotState.NEW}


def test_a_write_has_a_number_and_its_revision_is_the_next_condition() -> None:
    slot = Slot(b"k", 7)
    slot.move(SlotState.FREE, 5)
    assert (slot.state, slot.number, slot.revision) == (SlotState.FREE, 0, 5)
    slot.move(SlotState.BUSY)
    slot.move(SlotState.FREE, 9)
    assert (slot.state, slot.number, slot.revision) == (SlotState.FREE, 1, 9)
    slot.move(SlotState.BUSY)
    slot.move(SlotState.FREE)
    assert (slot.state, slot.number, slot.revision) == (SlotState.FREE, 2, 9)
    assert repr(slot) == "<Slot b'k' free n=2 m=9>"


def test_what_cannot_happen_is_a_bug() -> None:
    with pytest.raises(RuntimeError, match="a slot that is new cannot become busy"):
        Slot(b"k", 7).move(SlotState.BUSY)
