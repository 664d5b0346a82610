"""codec/compiled.py, codec/speedups.py: the reference, generated Python and the accelerator on mutated replies; `python
-m tests.fuzz.codec` runs longer.
"""

from random import Random
from typing import Any

import pytest

from etcd_aio import pb
from etcd_aio.codec import codegen, encode
from etcd_aio.codec.speedups import Accelerator
from etcd_aio.types import TxnResult
from tests.support import mutated_replies
from tests.support.codec_backends import accelerator_of, using

COUNT = 1_000


def wire_varint(number: int) -> bytes:
    return (bytes([number & 0x7F | 0x80]) + wire_varint(number >> 7)) if number > 0x7F else bytes([number])


@pytest.mark.parametrize("seed", [1, 2])
def test_all_decoders_agree_on_mutated_replies(seed: int) -> None:
    accelerator = accelerator_of("accelerated")
    decoded, refused = mutated_replies.compare((None, accelerator), Random(seed), COUNT, reference_every=4)
    assert decoded + refused == COUNT
    assert min(decoded, refused) > COUNT // 10


@pytest.mark.parametrize("length", [2**63 - 1, 2**63, 2**64 - 1])
def test_a_length_beyond_every_message_is_refused_alike(length: int) -> None:
    """Found after two million mutated replies: such a length is no size of C."""
    kv = encode(pb.KeyValue(key=b"k", mod_revision=1))
    deleted = bytes([0x1A, len(kv)]) + kv  # one of the previous key-values
    op = b"\x1a" + wire_varint(length) + deleted  # a deletion with the wrong length
    data = b"\x1a" + wire_varint(len(op)) + op
    found = []
    for accelerator in (None, accelerator_of("accelerated")):
        with using(accelerator):
            found.append(mutated_replies.outcomes(TxnResult, data, 0.5, 0.9))
    assert found[0] == found[1]
    assert all("cut short" in str(outcome) for outcome in found[0])


def move_items(items: list[Any], made: list[tuple[Any, ...]], most: int) -> int:
    made.append(tuple(items))
    items.clear()
    return 0


def test_a_decoder_that_differs_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(codegen, "_functions", {})  # which those of this accelerator must not enter

    def skips_one(data: bytes, at: int, end: int, pause: int, cost: int, tag: int, items: list[Any]) -> int:
        stop = at + 2 + data[at + 1]
        return stop if data[at + 1] < 128 and stop <= end else at

    def reads_none(data: bytes, at: int, end: int) -> None:
        return None

    found = Accelerator(skips_one, skips_one, move_items, reads_none, reads_none)
    with pytest.raises(mutated_replies.Disagreement):
        mutated_replies.compare((None, found), Random(1), 300, reference_every=300)
