"""proto/codec.py: the functions of the codec that are generated ahead are those that would be generated now."""

from importlib import import_module
from types import ModuleType
from typing import Any

import pytest

from etcd_aio import pb
from etcd_aio.codec import compiled, writers
from etcd_aio.codec.codegen import Source
from etcd_aio.codec.generated import writers as generated_writers
from etcd_aio.codec.speedups import ACCELERATOR
from tests.unit.proto.test_generate import generate, load


@pytest.fixture(scope="module")
def codec() -> ModuleType:
    return load("codec")


def test_committed_functions_are_what_the_generator_makes(codec: ModuleType) -> None:
    assert generate.differences(codec.generate(), codec.GENERATED_DIR) == [], "python proto/generate.py"


def test_replies_are_decoded_by_the_committed_functions(codec: ModuleType) -> None:
    # Those of the accelerator cannot be imported without it.
    kind = "decoders" if ACCELERATOR is None else "accelerated_decoders"
    used = import_module(f"etcd_aio.codec.generated.{kind}")
    for result in codec.DECODED:
        assert compiled._decoders[result] is used.DECODERS[result]
        assert compiled._stepwise_decoders[result] is used.STEPWISE_DECODERS[result]


def test_requests_are_written_alike_by_both() -> None:
    requests: dict[str, dict[str, Any]] = {
        "PutRequest": {"key": b"k", "value": b"v", "lease": -1, "prev_kv": True},
        "RangeRequest": {"key": b"k", "range_end": b"l", "limit": 300, "sort_order": 2, "keys_only": True},
        "TxnRequest": {"compare": [b"c"], "success": [b"s"], "failure": [b"f"]},
        "WatchCreateRequest": {"key": b"k", "filters": [1, 0], "watch_id": 7},
    }
    for name, values in requests.items():
        assert getattr(generated_writers, f"write_{name}")(**values) == writers[getattr(pb, name)](**values)


def test_two_meanings_of_a_variable_are_refused(codec: ModuleType) -> None:
    class One:
        name = "one"

        def __init__(self, value: object) -> None:
            self._value = value

        def source(self) -> Source:
            source = Source()
            with source.block("def one():"):
                source.line("return thing")
            return source

        def namespace(self) -> dict[str, object]:
            return {"thing": self._value}

        def callees(self) -> tuple[()]:
            return ()

    with pytest.raises(SystemExit, match="thing is"):
        codec._module("Title.", [One(pb.KeyValue), One(pb.EventEventType.PUT)], "")
