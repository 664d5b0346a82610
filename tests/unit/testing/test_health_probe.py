"""testing/health_probe.py: the bytes of a question; the answers come from real servers."""

import pytest

from etcd_aio.testing import health_probe as probe
from etcd_aio.testing.health_probe import ProbeError, _request, ask, is_healthy, raft_status


def test_a_question_without_a_body_is_a_get() -> None:
    assert _request("http://127.0.0.1:2379", "/health", None) == b"GET /health HTTP/1.0\r\nHost: 127.0.0.1:2379\r\n\r\n"


def test_a_body_is_sent_as_json_with_its_length() -> None:
    head, _, body = _request("http://[::1]:2379", "/v3/x", {"ID": "1"}).partition(b"\r\n\r\n")
    assert body == b'{"ID": "1"}'
    assert head.startswith(b"POST /v3/x HTTP/1.0\r\nHost: [::1]:2379\r\n")
    assert head.endswith(b"Content-Length: 11")


ANSWERS = {
    b"HTTP/1.0 200 OK\r\nX: y": b'{"health":"true"}',
    b"HTTP/1.0 503 Service Unavailable": b'{"health":"true"}',
    b"HTTP/2": b'{"health":"true"}',
    b"HTTP/1.0 200 OK": b"[]",
    b"HTTP/1.1 200 OK": b"no JSON",
}


@pytest.mark.anyio
@pytest.mark.parametrize("head", ANSWERS)
async def test_only_a_json_object_with_status_200_is_an_answer(head: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    async def exchange(endpoint: str, request: bytes, tls: object) -> tuple[bytes, bytes]:
        return head, ANSWERS[head]

    monkeypatch.setattr(probe, "_exchange", exchange)
    is_good = head.endswith(b"y")
    assert await is_healthy("http://h:1") is is_good
    if not is_good:
        with pytest.raises(ProbeError, match="http://h:1/health"):
            await ask("http://h:1", "/health")


@pytest.mark.anyio
@pytest.mark.parametrize(
    "answer",
    [b"{}", b'{"raft.status":{},"cmdline":[]}', b'{"raft.status":{"id":"x","lead":"0","term":1},"cmdline":[]}'],
)
async def test_a_raft_status_that_cannot_be_read(answer: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    async def exchange(endpoint: str, request: bytes, tls: object) -> tuple[bytes, bytes]:
        return b"HTTP/1.0 200 OK", answer

    monkeypatch.setattr(probe, "_exchange", exchange)
    with pytest.raises(ProbeError, match="raft status"):
        await raft_status("http://h:1")


@pytest.mark.anyio
async def test_a_server_that_is_not_there_is_a_probe_error(monkeypatch: pytest.MonkeyPatch) -> None:
    async def exchange(endpoint: str, request: bytes, tls: object) -> tuple[bytes, bytes]:
        raise ConnectionRefusedError

    monkeypatch.setattr(probe, "_exchange", exchange)
    assert not await is_healthy("http://h:1")
    with pytest.raises(ProbeError, match="ConnectionRefusedError"):
        await ask("http://h:1", "/health")
