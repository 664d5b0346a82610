"""EtcdServer: one real etcd member on this machine, for as long as a test wants it."""

import asyncio
import os
import shutil
import signal
import ssl
import tempfile
import time
from pathlib import Path
from typing import Self, TypeVar, Unpack

import anyio.to_thread

from etcd_aio.testing.binaries import EtcdBinary, find_etcd, read_binary
from etcd_aio.testing.errors import EtcdStartError
from etcd_aio.testing.health_probe import ProbeError, RaftStatus, is_healthy, raft_status
from etcd_aio.testing.options import Addresses, Membership, ServerOptions, ServerSettings, command_line, environment
from etcd_aio.testing.ports import free_ports, url_host
from etcd_aio.testing.process import ChildProcess

_POLL_SECONDS = 0.02
_EXIT_SECONDS = 5.0  # from SIGKILL to the end; beyond it the machine is in trouble
_PORT_TRIES = 5
_TAIL_BYTES = 1 << 16
_MOST_LINES = 10_000

_T = TypeVar("_T")


class EtcdServer:
    """A real etcd server, alone or as a member of an `EtcdCluster`.

    `async with EtcdServer() as server:` starts it, waits until it is ready and leaves neither process nor file behind:
    not after an exception, not after cancellation, and on Linux not even if the test process is killed (its temporary
    directory stays then). It ends with the thread that called `start()`.

    Starting and ending are for one task at a time; the faults may come from anywhere.

    Args:
        name: etcd's member name.
        ports: the client and the peer port. None picks free ones, and others if those turn out to be taken.
        membership: the cluster it belongs to; None makes a cluster of one.
        options: see `ServerSettings`.
    """

    def __init__(
        self,
        name: str = "m0",
        *,
        ports: tuple[int, int] | None = None,
        membership: Membership | None = None,
        **options: Unpack[ServerOptions],
    ) -> None:
        self.name = name
        self.settings = ServerSettings(**options)
        self._ports = ports
        self._has_given_ports = ports is not None
        self._membership = membership
        self._binary: EtcdBinary | None = None
        self._process: ChildProcess | None = None
        self._directory: Path | None = None
        self._tls = self.settings.tls.probe_context() if self.settings.tls is not None else None
        self._log_start = 0

    def __repr__(self) -> str:
        where = f"{self.endpoint}, {self.version}, pid {self.pid}" if self._process is not None else "not started"
        return f"<EtcdServer {self.name}: {where}>"

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    @property
    def binary(self) -> EtcdBinary:
        """The binary that runs."""
        return _started(self._binary)

    @property
    def version(self) -> str:
        """The server's version, such as "3.6.16"."""
        return self.binary.version

    @property
    def endpoint(self) -> str:
        """The URL for clients. It stays the same over restarts."""
        scheme = "http" if self.settings.tls is None else "https"
        return f"{scheme}://{url_host(self.settings.host)}:{_started(self._ports)[0]}"

    @property
    def endpoints(self) -> tuple[str, ...]:
        """The URL as a tuple of one, as clients take it."""
        return (self.endpoint,)

    @property
    def peer_url(self) -> str:
        """The URL for other members."""
        return f"http://{url_host(self.settings.host)}:{_started(self._ports)[1]}"

    @property
    def pid(self) -> int:
        """The id of the process, also after it has ended."""
        return _started(self._process).pid

    @property
    def is_running(self) -> bool:
        """Whether there is a process; a paused one counts."""
        return self._process is not None and self._process.is_running

    @property
    def is_paused(self) -> bool:
        """Whether the server was paused and not resumed."""
        return self._process is not None and self._process.is_paused

    @property
    def data_dir(self) -> Path:
        """The data directory of etcd."""
        return _started(self._directory) / "data"

    @property
    def log_path(self) -> Path:
        """The log of the server; restarts append to it."""
        return _started(self._directory) / "etcd.log"

    @property
    def probe_tls(self) -> ssl.SSLContext | None:
        """The context of the kit's own health checks; None for a server in plain text."""
        return self._tls

    async def start(self) -> None:
        """Start it and wait until it is ready. Cancellation kills what was started.

        Raises:
            EtcdNotFoundError: there is no fitting binary.
            EtcdStartError: it ended, or was not ready within `start_timeout`.
            RuntimeError: it runs already.
        """
        if self._process is not None:
            raise RuntimeError(f"etcd {self.name} was started already; to start it again, use restart()")
        if self._binary is None:
            # Reading the versions of binaries blocks, hence the thread.
            self._binary = await anyio.to_thread.run_sync(self._choose_binary)
        try:
            self._make_directory()
            for tries_left in reversed(range(_PORT_TRIES)):
                if not self._has_given_ports:
                    client, peer = free_ports(2, self.settings.host)
                    self._ports = (client, peer)
                try:
                    return await self._launch()
                except EtcdStartError as error:
                    if self._has_given_ports or not error.is_port_taken or not tries_left:
                        raise
        except BaseException:  # a cancellation too: nothing may stay behind
            await self.aclose()
            raise

    async def aclose(self) -> None:
        """Kill it and remove what is temporary, within five seconds; may be repeated. Cancellation does not stop it."""
        process = self._process
        try:
            if process is not None:
                process.kill_now()
                await process.wait(_EXIT_SECONDS)
        finally:
            self.close_now()

    def close_now(self) -> None:
        """Do what `aclose` does, without an await: for a `finally`, and for synchronous code. Blocks 20 ms."""
        process, self._process = self._process, None
        if process is not None:
            process.reap(_EXIT_SECONDS)
        directory, self._directory = self._directory, None
        if directory is not None and self.settings.directory is None:
            shutil.rmtree(directory, ignore_errors=True)

    async def kill(self) -> None:
        """SIGKILL, paused or not, and wait for the end. Cancellation does not save it.

        Raises:
            TimeoutError: it still runs after five seconds.
        """
        process = _started(self._process)
        process.kill_now()
        if not await process.wait(_EXIT_SECONDS):
            raise TimeoutError(f"etcd {self.name} still runs {_EXIT_SECONDS} seconds after SIGKILL")

    async def terminate(self, timeout: float = 15.0) -> None:
        """SIGTERM and wait: a graceful end, in which a leader first hands over; a paused server is resumed for it.

        A server that does not end is killed.

        Args:
            timeout: seconds to wait before killing. etcd itself waits some 7 seconds for streams that stay open.

        Raises:
            TimeoutError: it had to be killed.
        """
        process = _started(self._process)
        process.send(signal.SIGTERM)
        process.resume()
        if not await process.wait(timeout):
            await self.kill()
            raise TimeoutError(f"etcd {self.name} did not end within {timeout} seconds of SIGTERM, and was killed")

    def pause(self) -> None:
        """SIGSTOP: it freezes, its connections stay open and silent. On return it has stopped.

        Raises:
            RuntimeError: it does not run.
        """
        self._running().pause()

    def resume(self) -> None:
        """SIGCONT: it goes on where it stopped.

        Raises:
            RuntimeError: it does not run.
        """
        self._running().resume()

    async def restart(self, *, wipe: bool = False) -> None:
        """Start it again on the same ports and wait until it is ready. One that still runs is killed first.

        Cancellation kills it; `aclose()` is still due.

        Args:
            wipe: forget all data first: the same cluster of one, back at revision 1. A member of a larger cluster
                cannot do that alone: the others would rely on writes that it had acknowledged. See
                `EtcdCluster.replace`.

        Raises:
            EtcdStartError: it ended, or was not ready within `start_timeout`.
            ValueError: `wipe` for a member of a larger cluster.
        """
        if wipe and self._membership is not None and len(self._membership.peer_urls) > 1:
            raise ValueError("a wiped member cannot rejoin as if nothing had happened: use EtcdCluster.replace(member)")
        await self.kill()
        if wipe:
            self._wipe()
        await self._relaunch()

    async def rejoin(self, membership: Membership) -> None:
        """Start it again and empty as a member of `membership`: the server's half of `EtcdCluster.replace`.

        Raises:
            EtcdStartError: it ended, or was not ready within `start_timeout`.
        """
        await self.kill()
        self._wipe()
        self._membership = membership
        await self._relaunch()

    async def wait_ready(self, timeout: float | None = None) -> None:
        """Wait until `GET /health` on the client URL succeeds, and comes from this very server.

        Cancellation changes nothing.

        Args:
            timeout: seconds; None takes `start_timeout`.

        Raises:
            EtcdStartError: the process has ended, or was not ready in time. A member whose cluster has no quorum is not
                ready.
        """
        seconds = self.settings.start_timeout if timeout is None else timeout
        until = time.monotonic() + seconds
        while True:
            process = _started(self._process)
            if not process.is_running:
                raise self._start_error(f"ended with exit code {process.exit_code}")
            if await self._is_ready():
                return
            if time.monotonic() >= until:
                raise self._start_error(f"was not ready within {seconds} seconds")
            await asyncio.sleep(_POLL_SECONDS)

    async def raft_status(self) -> RaftStatus:
        """This member's view of raft: its own id, the leader's and the term.

        Raises:
            ProbeError: it does not answer within a second.
        """
        return await raft_status(self.endpoint, self._tls)

    def log_tail(self, lines: int = 20) -> str:
        """The last lines that the server wrote since its last start."""
        with self.log_path.open("rb") as log:
            end = log.seek(0, os.SEEK_END)
            log.seek(max(self._log_start, end - _TAIL_BYTES))
            return "\n".join(log.read().decode(errors="replace").splitlines()[-lines:])

    def _running(self) -> ChildProcess:
        if self._process is None or not self._process.is_running:
            raise RuntimeError(f"etcd {self.name} does not run")
        return self._process

    def _choose_binary(self) -> EtcdBinary:
        wanted = self.settings.binary
        if wanted is None:
            return find_etcd(self.settings.version)
        return wanted if isinstance(wanted, EtcdBinary) else read_binary(wanted)

    def _make_directory(self) -> None:
        if self.settings.directory is None:
            self._directory = Path(tempfile.mkdtemp(prefix="etcd_aio-"))
        else:
            self._directory = self.settings.directory / self.name
            self._directory.mkdir(parents=True, exist_ok=True)

    def _wipe(self) -> None:
        shutil.rmtree(self.data_dir, ignore_errors=True)

    async def _relaunch(self) -> None:
        """Launch on the same ports. If another process uses one now, it is most likely for a moment."""
        until = time.monotonic() + self.settings.start_timeout
        while True:
            try:
                return await self._launch()
            except EtcdStartError as error:
                if not error.is_port_taken or time.monotonic() >= until:
                    raise
            await asyncio.sleep(_POLL_SECONDS)

    async def _launch(self) -> None:
        addresses = Addresses(self.endpoint, self.peer_url, self.data_dir)
        membership = self._membership or Membership({self.name: self.peer_url})
        self._log_start = self.log_path.stat().st_size if self.log_path.exists() else 0
        # In this thread and no other: see `process`.
        self._process = ChildProcess.spawn(
            command_line(self.name, self.binary, self.settings, addresses, membership),
            environment=environment(self.settings, os.environ),
            log=self.log_path,
        )
        try:
            await self.wait_ready()
        except BaseException:  # a cancellation too: nothing may stay behind
            self._process.reap(_EXIT_SECONDS)
            raise

    async def _is_ready(self) -> bool:
        if not await is_healthy(self.endpoint, self._tls):
            return False
        # Another etcd may have the port, before this one has noticed it.
        try:
            status = await self.raft_status()
        except ProbeError:
            return False
        return f"--data-dir={self.data_dir}" in status.command_line

    def _start_error(self, what: str) -> EtcdStartError:
        lines = self.log_tail(_MOST_LINES).splitlines()
        # A flag that it does not know is named first, and its whole usage text follows.
        shown = lines if len(lines) <= 25 else [*lines[:5], "...", *lines[-20:]]
        return EtcdStartError(
            "\n".join([f"etcd {self.version} {self.name} ({self.binary.path}) {what}; its log:", *shown]),
            is_port_taken=any("address already in use" in line for line in lines[-20:]),
        )


def _started(value: _T | None) -> _T:
    if value is None:
        raise RuntimeError("the server was not started")
    return value
