"""The back ends of the codec, so that one test runs on each: generated Python alone, and with the accelerator."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from etcd_aio.codec import compiled
from etcd_aio.codec.codegen import function_of
from etcd_aio.codec.decodable import Function
from etcd_aio.codec.decoder import Decoder
from etcd_aio.codec.speedups import ACCELERATOR, BACKEND, Accelerator
from etcd_aio.codec.targets import target_of

NAMES = ("pure", "accelerated")


def accelerator_of(name: str) -> Accelerator | None:
    """The accelerator of a back end; the test is skipped if it is not there, but fails where it must be there."""
    if name == "pure":
        return None
    if ACCELERATOR is None:
        assert os.environ.get("ETCD_AIO_ACCELERATOR") != "yes", BACKEND
        pytest.skip(f"no accelerator: {BACKEND}")
    return ACCELERATOR


@contextmanager
def using(accelerator: Accelerator | None) -> Iterator[None]:
    """Replies are decoded by this back end, within the block."""
    with pytest.MonkeyPatch.context() as patch:
        for name, in_steps in (("_decoders", False), ("_stepwise_decoders", True)):
            patch.setattr(compiled, name, _functions(accelerator, in_steps=in_steps))
        yield


def _functions(accelerator: Accelerator | None, *, in_steps: bool) -> object:
    def make(decodable: type[object]) -> Function:
        return function_of(Decoder(target_of(decodable), in_steps, accelerator))

    return compiled._Functions[type[object]](make)


@pytest.fixture(params=NAMES, scope="module")
def codec_backend(request: pytest.FixtureRequest) -> Iterator[Accelerator | None]:
    """Every test that uses this runs on each back end."""
    accelerator = accelerator_of(request.param)
    with using(accelerator):
        yield accelerator
