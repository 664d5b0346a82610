"""Asks a server for its health and its view of raft, over HTTP/1 and without the client.

`/health` and `/debug/vars` need no token, so they also answer once authentication is on.
"""

import asyncio
import json
import ssl
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

_PROBE_SECONDS: Final = 1.0  # a frozen member must not delay the request to the next one
_MOST_BYTES: Final = 4 << 20


class ProbeError(Exception):
    """A server gave no useful answer."""


@dataclass(frozen=True, slots=True)
class RaftStatus:
    """One member's view of its cluster.

    Attributes:
        member_id: the member itself.
        leader_id: the leader in its view; 0 without a leader.
        term: its raft term; the view of the latest term is the valid one.
        command_line: the command that started the server.
    """

    member_id: int
    leader_id: int
    term: int
    command_line: tuple[str, ...]


async def is_healthy(endpoint: str, tls: ssl.SSLContext | None = None) -> bool:
    """Whether `GET /health` reports a healthy server within a second."""
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
        raise ProbeError(f"{endpoint} does not report its raft status")
    try:
        return RaftStatus(
            member_id=int(raft["id"], 16),
            leader_id=int(raft["lead"], 16),
            term=int(raft["term"]),
            command_line=tuple(str(argument) for argument in command_line),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise ProbeError(f"{endpoint} reports an invalid raft status") from error


async def ask(
    endpoint: str,
    path: str,
    *,
    body: dict[str, object] | None = None,
    tls: ssl.SSLContext | None = None,
    timeout: float = _PROBE_SECONDS,
) -> dict[str, object]:
    """GET `path`, or POST `body` as JSON to it. Returns the JSON object of the answer.

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
