"""Writes over the gateway through proxies in trouble: what is said of a write is true in the store."""

from contextlib import suppress

import pytest

from etcd_aio import Client, EtcdError
from etcd_aio.testing import EtcdServer
from tests.support.http1_meddler import Answer, Pass, meddler
from tests.support.http1_proxies import ProxyName, http1_proxy
from tests.support.until import PATIENCE

pytestmark = [pytest.mark.anyio, pytest.mark.cluster]

LONGEST = 700  # bytes; an answer to a put has less, with its headers
STATUSES = (301, 307, 400, 401, 403, 404, 405, 408, 409, 413, 421, 426, 429, 500, 501, 502, 503, 504, 520, 524)


async def puts(server: EtcdServer, meddling: dict[str, Pass | Answer]) -> dict[str, tuple[bool | None, int]]:
    """Put each key while its answer is meddled with.

    Returns:
        The error's `maybe_applied`, None without an error; and how often the key was put.
    """
    now: Pass | Answer = Pass()
    said: dict[str, bool | None] = {}
    async with (
        meddler(server.endpoint, lambda method, path: now if path.endswith("/kv/put") else Pass()) as endpoint,
        Client(endpoint, engine="gateway", timeout=PATIENCE) as client,
        Client(server.endpoint) as reader,
    ):
        for key, how in meddling.items():
            now = how
            said[key] = None
            try:
                await client.put(key, "v")
            except EtcdError as error:
                said[key] = error.maybe_applied
        stored = {key: await reader.get(key) for key in meddling}
    return {key: (said[key], 0 if kv is None else kv.version) for key, kv in stored.items()}


@pytest.mark.parametrize("step", [61, pytest.param(1, marks=pytest.mark.nightly)])
@pytest.mark.parametrize("resets", [True, False])
async def test_an_answer_that_is_cut_at_any_byte(
    shared_server: EtcdServer, prefix: str, step: int, resets: bool
) -> None:
    cuts = range(0, LONGEST, step)
    found = await puts(shared_server, {f"{prefix}{cut}": Pass(cut=cut, resets=resets) for cut in cuts})
    # One may meet the end of the socket of the one before, and never arrive; it is not known which.
    assert set(found.values()) <= {(True, 0), (True, 1), (None, 1)}
    assert found[f"{prefix}0"] == (True, 1)
    assert (None, 1) in found.values(), "some answers were whole"


@pytest.mark.parametrize("acts", [True, False])
async def test_a_status_that_is_not_etcds_leaves_the_outcome_unknown(
    shared_server: EtcdServer, prefix: str, acts: bool
) -> None:
    """The proxy may have sent the request, and lost the answer."""
    meddling = {f"{prefix}{status}": Pass(instead=status) if acts else Answer(status) for status in STATUSES}
    found = await puts(shared_server, meddling)
    assert set(found.values()) == {(True, int(acts))}


async def test_reads_are_repeated_whatever_a_proxy_says_once(shared_server: EtcdServer) -> None:
    answers = iter([*(Answer(status) for status in STATUSES)])
    is_first = False

    def meddle(method: str, path: str) -> Pass | Answer:
        nonlocal is_first
        if method == "POST" and is_first:
            is_first = False
            return next(answers)
        return Pass()

    async with (
        meddler(shared_server.endpoint, meddle) as endpoint,
        Client(endpoint, engine="gateway", timeout=PATIENCE) as client,
    ):
        for _ in STATUSES:
            is_first = True
            assert await client.get("missing") is None
    assert not list(answers)


# What the proxy does by default, and what it can be told to do with requests that may have been acted on.
REPEATS = [
    ("nginx", "", False),
    ("nginx", "proxy_next_upstream error timeout non_idempotent;", True),
    ("haproxy", "", False),
    ("haproxy", "retry-on all-retryable-errors", True),
]


@pytest.mark.parametrize(("proxy", "more", "repeats"), REPEATS)
async def test_a_proxy_that_repeats_puts_applies_them_twice_but_no_exactly_once_write(
    shared_server: EtcdServer, prefix: str, proxy: ProxyName, more: str, repeats: bool
) -> None:
    """What the page about networks without HTTP/2 warns of."""
    loses_next = False

    def meddle(method: str, path: str) -> Pass | Answer:
        nonlocal loses_next
        if loses_next and path in ("/v3/kv/put", "/v3/kv/txn"):
            loses_next = False
            return Pass(cut=0)
        return Pass()

    async with (
        meddler(shared_server.endpoint, meddle) as one,
        meddler(shared_server.endpoint, meddle) as other,
        http1_proxy(proxy, one, other, more=more) as endpoint,
        Client(endpoint, engine="gateway", timeout=PATIENCE) as client,
        Client(shared_server.endpoint) as reader,
    ):
        loses_next = True
        if repeats:
            await client.put(prefix + "put", "v")
        else:
            with pytest.raises(EtcdError) as caught:
                await client.put(prefix + "put", "v")
            assert caught.value.maybe_applied
        put = await reader.get(prefix + "put")
        assert put is not None
        assert put.version == (2 if repeats else 1)
        async with client.exactly_once() as once:
            with suppress(EtcdError):
                await once.put(prefix + "first", "v")  # makes what the others need
            loses_next = True
            await once.put(prefix + "once", "v")
            assert not loses_next, "an answer was lost"
        done = await reader.get(prefix + "once")
        assert done is not None
        assert done.version == 1
