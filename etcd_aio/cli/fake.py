"""The verb fake: serves a fake etcd over sockets until it is interrupted, for tests in any language."""

import asyncio
from contextlib import AsyncExitStack
from typing import Final

from etcd_aio.cli.arguments import exactly
from etcd_aio.cli.grammar import value, verb
from etcd_aio.cli.outcome import ExitCode, Failure
from etcd_aio.cli.session import Session
from etcd_aio.fake import FakeEtcd

_ADDRESS: Final = "127.0.0.1:2379"


@verb(
    "fake",
    "",
    value("--listen", default=_ADDRESS, help=f"HOST (a free port), HOST:PORT or unix:PATH; by default {_ADDRESS}"),
    value("--members", default=1, kind=int, help="how many members; they take the ports behind PORT"),
    value("--release", default="3.7", help="the release of etcd that it is: 3.4, 3.5, 3.6 or 3.7"),
    is_local=True,
)
async def fake(session: Session, words: tuple[str, ...], *, listen: str, members: int, release: str) -> None:
    """Serves a fake etcd in memory until it is interrupted, and prints its endpoints once it accepts connections."""
    exactly(words, 0, "fake accepts no arguments")
    async with AsyncExitStack() as stack:
        etcd = await stack.enter_async_context(FakeEtcd(release, members=members))
        try:
            endpoints = await stack.enter_async_context(etcd.serve(listen))
        except OSError as error:
            raise Failure(ExitCode.ERROR, f"cannot listen at {listen!r}: {error.strerror or error}") from None
        session.line(endpoints)
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            raise Failure(ExitCode.OK) from None  # it is ended by an interrupt, as servers are
