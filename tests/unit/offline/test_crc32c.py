"""offline/crc32c.py: the published values, in pieces, and the accelerator beside Python."""

import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from etcd_aio.base.accelerator import UnusableError
from etcd_aio.offline import crc32c as module
from etcd_aio.offline.crc32c import check, crc32c, pure_crc32c

BOTH = pytest.mark.parametrize("crc", [crc32c, pure_crc32c])


@BOTH
@pytest.mark.parametrize(
    ("data", "expected"),
    [  # of RFC 3720, and of the empty message
        (b"", 0),
        (bytes(32), 0x8A9136AA),
        (b"\xff" * 32, 0x62A8AB43),
        (bytes(range(32)), 0x46DD794E),
        (bytes(reversed(range(32))), 0x113FDB5C),
        (b"123456789", 0xE3069283),
    ],
)
def test_published_values(crc: Any, data: bytes, expected: int) -> None:
    assert crc(data, 0) == expected


@given(st.binary(max_size=200), st.integers(0, 200))
def test_pieces_have_the_checksum_of_the_whole(data: bytes, at: int) -> None:
    whole = pure_crc32c(data)
    assert crc32c(data, 0) == whole
    for crc in (crc32c, pure_crc32c):
        assert crc(data[at:], crc(data[:at], 0)) == whole


@pytest.mark.skipif(module.BACKEND != "accelerated", reason=f"the accelerator is not used: {module.BACKEND}")
def test_the_accelerator_refuses_other_arguments() -> None:
    crc: Any = crc32c
    for arguments in ((), (b"",), ("text", 0), (b"", "0"), (b"", 0, 0)):
        with pytest.raises(TypeError):
            crc(*arguments)


def test_an_accelerator_that_computes_something_else_is_not_used() -> None:
    with pytest.raises(UnusableError):
        check(SimpleNamespace(crc32c=lambda data, before: 1))  # type: ignore[arg-type]
    with pytest.raises(AttributeError):
        check(SimpleNamespace())  # type: ignore[arg-type]


def test_without_the_accelerator_python_computes_it() -> None:
    program = "from etcd_aio.offline.crc32c import *; print(crc32c(b'123456789', 0), crc32c is pure_crc32c)"
    environ = {"ETCD_AIO_PURE_PYTHON": "1", "PYTHONPATH": ":".join(filter(None, sys.path))}
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, env=environ, check=True, timeout=120)
    assert found.stdout.split() == [b"3808858755", b"True"]
