"""cache/decoder.py: what it returns, values that cannot be decoded, and that it leaves the loop free."""

import asyncio
import json
import logging
import time
from collections.abc import Callable

import pytest

from etcd_aio import KeyValue
from etcd_aio.cache.decoder import Decoder

pytestmark = pytest.mark.anyio

GOOD = KeyValue(b"good", b"[1]")
BAD = KeyValue(b"bad", b"c4n4ry-value")
WORSE = KeyValue(b"worse", b"c4n4ry-other")


def of(on_error: Callable[[bytes, Exception], None] | None = None) -> Decoder[object]:
    return Decoder(json.loads, on_error, "cache prefix='p/'")


async def test_values_by_key_of_those_that_can_be_decoded() -> None:
    decoder = of(lambda key, error: None)
    assert await decoder.decode_all([]) == {}
    assert await decoder.decode_all([BAD, GOOD, WORSE]) == {b"good": [1]}
    assert decoder.errors == 2


async def test_errors_go_to_the_application_each_time() -> None:
    told: list[tuple[bytes, str]] = []
    decoder = of(lambda key, error: told.append((key, type(error).__name__)))
    for _ in range(2):
        await decoder.decode_all([BAD])
    assert told == [(b"bad", "JSONDecodeError")] * 2


async def test_without_on_error_a_key_is_logged_once_until_it_can_be_decoded(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "etcd_aio.cache")
    decoder = of()
    for _ in range(3):
        await decoder.decode_all([BAD, WORSE])
    lines = [record.getMessage() for record in caplog.records]
    assert [("bad" in line, "worse" in line) for line in lines] == [(True, False), (False, True)]
    assert all("JSONDecodeError" in line and "cache prefix='p/'" in line for line in lines)
    assert not any("c4n4ry" in line for line in lines)
    await decoder.decode_all([KeyValue(b"bad", b"1")])
    await decoder.decode_all([BAD, WORSE])
    assert len(caplog.records) == 3, "bad again, since it was good in between"
    assert decoder.errors == 8


@pytest.mark.parametrize(
    "error", [StopIteration(), RecursionError(), TimeoutError(), ExceptionGroup("x", [KeyError()])]
)
async def test_whatever_decode_raises_it_goes_on(error: Exception) -> None:
    def decode(value: bytes) -> bytes:
        if value == BAD.value:
            raise error
        return value

    told: list[Exception] = []
    decoder = Decoder(decode, lambda _, raised: told.append(raised), "cache")
    assert set(await decoder.decode_all([BAD, GOOD])) == {b"good"}
    assert told == [error]


async def test_a_bug_in_on_error_is_reported_and_the_rest_is_decoded() -> None:
    reported: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: reported.append(context["exception"]))

    def on_error(key: bytes, error: Exception) -> None:
        raise RuntimeError("a bug")

    assert await of(on_error).decode_all([BAD, GOOD]) == {b"good": [1]}
    assert [str(error) for error in reported] == ["a bug"]


async def test_of_several_values_of_a_key_the_first_that_can_be_decoded_counts(
    caplog: pytest.LogCaptureFixture,
) -> None:
    decoder = of()
    newest_first = [KeyValue(b"a", b"bad"), GOOD, KeyValue(b"a", b"2"), KeyValue(b"a", b"1"), KeyValue(b"a", b"bad")]
    assert await decoder.decode_all(newest_first) == {b"a": 2, b"good": [1]}
    assert decoder.errors == 1, "what is older than the value that counts is not looked at"
    await decoder.decode_all([KeyValue(b"a", b"worse")])
    assert len(caplog.records) == 1, "its newest value could not be decoded: it is the same trouble"


async def test_none_is_a_value() -> None:
    assert await Decoder(lambda value: None, None, "cache").decode_all([GOOD]) == {b"good": None}


async def test_a_slow_function_leaves_turns_to_others() -> None:
    def decode(value: bytes) -> bytes:
        end = time.perf_counter() + 0.001
        while time.perf_counter() < end:
            pass
        return value

    turns = 0

    async def tick() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    ticking = asyncio.create_task(tick())
    kvs = [KeyValue(b"%d" % number) for number in range(60)]
    assert len(await Decoder(decode, None, "cache").decode_all(kvs)) == 60
    ticking.cancel()
    assert turns >= 15, "a turn at least for each three values, of a millisecond each"
