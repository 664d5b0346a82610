"""Requests that no public call sends: raw messages through a client's invoker, and additional metadata."""

from typing import Any

import pytest

from etcd_aio import Client
from etcd_aio.error_handler.call_with_retries import CallAttempts
from etcd_aio.methods import Method, Reply, Request


async def send(
    client: Client, method: Method[Request, Reply], request: Request | bytes, endpoint: str | None = None
) -> Reply:
    """Send a request once, unchecked."""
    return await client._invoker.unary(method, request, retry="never", endpoint=endpoint)


def carry(monkeypatch: pytest.MonkeyPatch, *pairs: tuple[str, str]) -> None:
    """Append this to the metadata of every unary call."""
    original = CallAttempts.carry_token
    names = {name for name, _ in pairs}

    def carry_token(self: CallAttempts[Any, Any]) -> None:
        original(self)
        kept = (pair for pair in self._metadata if pair[0] not in names)
        self._metadata = (*kept, *pairs)

    monkeypatch.setattr(CallAttempts, "carry_token", carry_token)
