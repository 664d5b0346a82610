"""Asking a server how it is, over plain HTTP/1 and independent of the client under test.

`/health` and `/debug/vars` need no token, so they also answer once authentication is on.
"""

import asyncio
import json
import ssl
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

_PROBE_SECONDS: Final = 1.0  # a frozen member must not hold up the question to the next one
_MOST_BYTES: Final = 4 << 20


class ProbeError(Exception):
    """A server gave no useful answer."""


@dataclass(frozen=True, slots=True)
class RaftStatus:
    """What one member thinks of its cluster.

    Attributes:
        member_id: the member itself.
        leader_id: the member it takes for the leader; 0 if it knows none.
        term: its raft term: of two opinions, the one of the later term holds.
        command_line: how the server was started.
    """

    member_id: int
    leader_id: int
    term: int
    command_line: tuple[str, ...]


async def is_healthy(endpoint: str, tls: ssl.SSLContext | None = None) -> bool:
    """Whether `GET /health` says so within a second; a server that does not answer is not healthy."""
    try:
        answer = await ask(endpoint, "/health", tls=tls)
    except ProbeError:
        return False
    return answer.get("health") in ("true", True)


async def raft_status(endpoint: str, tls: ssl.SSLContext | None = None) -> RaftStatus:
    """The member's view of raft.

    Raises:
        ProbeError: it does not answer within a second, or has not begun to take part.
    """
    answer = await ask(endpoint, "/debug/vars", tls=tls)
    raft, command_line = answer.get("raft.status"), answer.get("cmdline")
    if not isinstance(raft, dict) or not isinstance(command_line, list):
        raise ProbeError(f"{endpoint} does not tell its raft status")
    try:
        return RaftStatus(
            member_id=int(raft["id"], 16),
            leader_id=int(raft["lead"], 16),
            term=int(raft["term"]),
            command_line=tuple(str(argument) for argument in command_line),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise ProbeError(f"{endpoint} tells a raft status that cannot be read") from error


async def ask(
    endpoint: str,
    path: str,
    *,
    body: dict[str, object] | None = None,
    tls: ssl.SSLContext | None = None,
    timeout: float = _PROBE_SECONDS,
) -> dict[str, object]:
    """GET `path`, or POST `body` as JSON to it; the JSON object that comes back.

    Raises:
        ProbeError: no answer within `timeout` seconds, a status other than 200, or no JSON object.
    """
    try:
        async with asyncio.timeout(timeout):
            head, content = await _exchange(endpoint, _request(endpoint, path, body), tls)
    except (OSError, ValueError) as error:  # TimeoutError and ssl.SSLError are OSErrors
        raise ProbeError(f"{endpoint}{path}: {str(error) or type(error).__name__}") from error
    status = head.split(b"\r\n", 1)[0].split(b" ")
    if len(status) < 2 or status[1] != b"200":
        raise ProbeError(f"{endpoint}{path}: {content[:200].decode(errors='replace').strip() or head[:80]!r}")
    try:
        answer: object = json.loads(content)
    except ValueError as error:
        raise ProbeError(f"{endpoint}{path} answers something that is not JSON") from error
    if not isinstance(answer, dict):
        raise ProbeError(f"{endpoint}{path} answers something that is not a JSON object")
    return answer


def _request(endpoint: str, path: str, body: dict[str, object] | None) -> bytes:
    # HTTP/1.0: the server closes when it is done and does not chunk, so reading to the end is the whole parser.
    host = urlsplit(endpoint).netloc
    if body is None:
        return f"GET {path} HTTP/1.0\r\nHost: {host}\r\n\r\n".encode()
    content = json.dumps(body).encode()
    head = f"POST {path} HTTP/1.0\r\nHost: {host}\r\nContent-Type: application/json\r\nContent-Length: {len(content)}"
    return head.encode() + b"\r\n\r\n" + content


async def _exchange(endpoint: str, request: bytes, tls: ssl.SSLContext | None) -> tuple[bytes, bytes]:
    url = urlsplit(endpoint)
    reader, writer = await asyncio.open_connection(url.hostname, url.port, ssl=tls)
    try:
        writer.write(request)
        await writer.drain()
        answer = bytearray()
        while chunk := await reader.read(1 << 16):
            answer += chunk
            if len(answer) > _MOST_BYTES:
                raise ValueError("the answer is too long")
    finally:
        # Not a graceful close: a TLS one would wait for a peer that may be frozen.
        writer.transport.abort()
    head, _, content = bytes(answer).partition(b"\r\n\r\n")
    return head, content
