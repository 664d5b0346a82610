"""The reference, generated Python and the accelerator on mutated replies; `python -m tests.fuzz.codec` runs longer."""

from random import Random
from typing import Any

import pytest

from etcd_aio.codec import codegen
from etcd_aio.codec.speedups import Accelerator
from tests.support import mutated_replies
from tests.support.codec_backends import accelerator_of

COUNT = 1_000


@pytest.mark.parametrize("seed", [1, 2])
def test_all_decoders_agree_on_mutated_replies(seed: int) -> None:
    accelerator = accelerator_of("accelerated")
    decoded, refused = mutated_replies.compare((None, accelerator), Random(seed), COUNT, reference_every=4)
    assert decoded + refused == COUNT
    assert min(decoded, refused) > COUNT // 10


def test_a_decoder_that_differs_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(codegen, "_functions", {})  # which those of this accelerator must not enter

    def skips_one(data: bytes, at: int, end: int, pause: int, cost: int, tag: int, items: list[Any]) -> int:
        stop = at + 2 + data[at + 1]
        return stop if data[at + 1] < 128 and stop <= end else at

    with pytest.raises(mutated_replies.Disagreement):
        mutated_replies.compare((None, Accelerator(skips_one, skips_one)), Random(1), 300, reference_every=300)
