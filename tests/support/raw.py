"""Requests that no public call sends: raw messages through a client's invoker, and additional metadata."""

from typing import Any

import pytest

from etcd_aio import Client
from etcd_aio.balancer import Metadata, SubConnection
from etcd_aio.methods import Method, Reply, Request


async def send(
    client: Client, method: Method[Request, Reply], request: Request | bytes, endpoint: str | None = None
) -> Reply:
    """Send a request once, unchecked."""
    return await client._invoker.unary(method, request, retry="never", endpoint=endpoint)


def carry(monkeypatch: pytest.MonkeyPatch, *pairs: tuple[str, str]) -> None:
    """Append this to the metadata of every unary attempt."""
    original = SubConnection.unary
    names = {name for name, _ in pairs}

    async def unary(
        self: SubConnection, path: str, payload: bytes, metadata: Metadata, *rest: Any, **more: Any
    ) -> bytes:
        kept = (pair for pair in metadata if pair[0] not in names)
        return await original(self, path, payload, (*kept, *pairs), *rest, **more)

    monkeypatch.setattr(SubConnection, "unary", unary)
