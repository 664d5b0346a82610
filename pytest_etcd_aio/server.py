"""Server: a real server as the fixtures give it, with calls that block instead of coroutines.

The servers run in a loop and a thread of their own, so that every test may use them: a sync one, and one with a loop of
its own. A call blocks the loop of an async test until it is done; `await asyncio.to_thread(cluster.leader)` does not.
"""

from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, TypeVar

import pytest
from anyio.from_thread import BlockingPortal

from etcd_aio.testing import EtcdServer
from pytest_etcd_aio.access import Access
from pytest_etcd_aio.wanted import private_only

_T = TypeVar("_T")


class Server:
    """A real etcd server: the fixture `etcd_server`, and the members of `etcd_cluster`.

    After each test it is healed: resumed if it is paused, and started again if it has ended. Calls block, and may come
    from any thread.
    """

    def __init__(self, portal: BlockingPortal, server: EtcdServer, access: Access, *, is_private: bool) -> None:
        self._portal = portal
        self._server = server
        self._access = access
        self._is_private = is_private

    def __repr__(self) -> str:
        return repr(self._server)

    @property
    def access(self) -> Access:
        """How clients reach it: endpoint, TLS, user."""
        return self._access.through(self.endpoint)

    @property
    def is_private(self) -> bool:
        """Whether no other test uses it."""
        return self._is_private

    @property
    def endpoint(self) -> str:
        """The URL for clients. It stays the same over restarts."""
        return self._server.endpoint

    @property
    def endpoints(self) -> tuple[str, ...]:
        """The same as a tuple of one."""
        return self._server.endpoints

    @property
    def name(self) -> str:
        """Its name among the members."""
        return self._server.name

    @property
    def version(self) -> str:
        """The version of etcd, such as "3.6.16"."""
        return self._server.version

    @property
    def is_running(self) -> bool:
        """Whether there is a process; a paused one counts."""
        return self._server.is_running

    @property
    def is_paused(self) -> bool:
        """Whether it was paused and not resumed."""
        return self._server.is_paused

    @property
    def data_dir(self) -> Path:
        """The data directory of etcd."""
        return self._server.data_dir

    def log_tail(self, lines: int = 20) -> str:
        """The last lines that the server wrote since its last start."""
        return self._server.log_tail(lines)

    def kill(self) -> None:
        """SIGKILL, paused or not, and wait for the end."""
        self.run(self._server.kill)

    def stop(self, timeout: float = 15.0) -> None:
        """SIGTERM and wait: a graceful end.

        Args:
            timeout: seconds until it is killed instead.

        Raises:
            TimeoutError: it had to be killed.
        """
        self.run(self._server.terminate, timeout)

    def restart(self, *, wipe: bool = False) -> None:
        """Start it again on the same ports and wait until it is ready. One that still runs is killed first.

        Args:
            wipe: forget all data first; for a private server only.

        Raises:
            EtcdStartError: it ended, or was not ready in time.
            pytest.UsageError: `wipe` for a server that other tests use too.
        """
        if wipe and not self._is_private:
            raise pytest.UsageError(private_only("restart(wipe=True)"))
        self.run(lambda: self._server.restart(wipe=wipe))

    def pause(self) -> None:
        """SIGSTOP: it freezes, its connections stay open and silent."""
        self._server.pause()

    def resume(self) -> None:
        """SIGCONT: it goes on where it stopped."""
        self._server.resume()

    def is_healthy(self) -> bool:
        """Whether nothing has to be healed."""
        return self.is_running and not self.is_paused

    def heal(self) -> None:
        """Let it run again."""
        if self.is_paused:
            self.resume()
        if not self.is_running:
            self.restart()

    def run(self, function: Callable[..., Coroutine[Any, Any, _T]], *arguments: object) -> _T:
        """Run a coroutine function in the loop of the server."""
        result: _T = self._portal.call(function, *arguments)
        return result

    def close(self) -> None:
        """End it."""
        self.run(self._server.aclose)
