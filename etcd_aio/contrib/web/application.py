"""Application: the client of a web application, from its start to its end, in each worker process.

The object is made beside the application, when its module is imported. Nothing is made then that belongs to a process
or to an event loop: the client is made when the worker starts, so that servers may fork, reload, and start it again.
"""

import inspect
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import ClassVar, Literal, TypeAlias, TypedDict, TypeVar, get_args

from etcd_aio import Client, KeyLike
from etcd_aio.arguments import encode_key, finite_seconds, flag, one_of, whole_number
from etcd_aio.base import when_constructed
from etcd_aio.contrib.source import ClientSource, new_client
from etcd_aio.contrib.web.jobs import LeaderJob, LeaderJobs, Work
from etcd_aio.contrib.web.readiness import Readiness, ReadinessCheck
from etcd_aio.contrib.web.singleton import Singleton

Ready: TypeAlias = Literal["lazy", "connected"]
"""When an application starts: at once, or when a member is connected."""

AnyWork = TypeVar("AnyWork", bound=Work)


class ApplicationOptions(TypedDict, total=False):
    """The keyword arguments of `EtcdApplication`, which the classes for frameworks take too."""

    ready: Ready
    ready_timeout: float
    shutdown_timeout: float
    read: bool
    details: bool


class _StartedWorker:
    """A worker process from one start of the application to its end: its client, its check, its jobs."""

    def __init__(self, client: Client, *, read: bool) -> None:
        self.client = client
        self.process = os.getpid()
        self.check = ReadinessCheck(client, read=read)
        self.jobs: LeaderJobs | None = None


class EtcdApplication:
    """The client of a web application, its background tasks, and its probes. Each framework has a class of its own.

    Args:
        source: endpoints, a URL, or a function that makes the client, such as `Client.from_env`. Default: etcd at
            `127.0.0.1:2379`.
        ready: `"lazy"`: the application starts while etcd is down. `"connected"`: it waits until a member is
            connected, and does not start without one. Default: `"lazy"`.
        ready_timeout: seconds of that wait. Default: 10.
        shutdown_timeout: seconds that background tasks get to end when the application stops. Default: 3.
        read: whether readiness needs the answer to a linearizable read, besides a connection. Default: True.
        details: whether the answer to a readiness probe has addresses and error texts. Default: False, since anyone may
            ask.

    Raises:
        ValueError: an argument is invalid.
        TypeError: an argument is of another type.
    """

    wiring: ClassVar[str] = "async with etcd.running():"
    """The line that an application needs, for the error without it."""

    def __init__(
        self,
        source: ClientSource = None,
        *,
        ready: Ready = "lazy",
        ready_timeout: float = 10.0,
        shutdown_timeout: float = 3.0,
        read: bool = True,
        details: bool = False,
    ) -> None:
        self._source = source
        self._ready = one_of(get_args(Ready), ready, "ready", error=ValueError)
        self._ready_timeout = finite_seconds(ready_timeout, "ready_timeout")
        self._shutdown_timeout = finite_seconds(shutdown_timeout, "shutdown_timeout")
        self._reads = flag(read, "read")
        self._details = flag(details, "details")
        self._jobs: dict[bytes, LeaderJob] = {}
        self._worker: _StartedWorker | None = None

    @when_constructed
    def __repr__(self) -> str:
        return f"<{type(self).__name__} {'running' if self._own() is not None else 'not running'}>"

    # Lifetime.

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Client]:
        """The application runs in this block: `async with etcd.running() as client:`.

        Entering makes the client. Leaving ends the background tasks, and closes the client. An exception of the block
        leaves it unchanged.

        Raises:
            NoAvailableEndpointsError: no member was connected in time, with `ready="connected"`.
            RuntimeError: it runs already.
        """
        client = await self.start()
        try:
            self.start_jobs()
            yield client
        finally:
            await self.stop()

    async def start(self) -> Client:
        """Make the client, for frameworks that call one function at the start and another one at the end.

        Raises:
            NoAvailableEndpointsError: no member was connected in time, with `ready="connected"`.
            RuntimeError: it runs already.

        Cancellation: the client is closed.
        """
        if self._own() is not None:
            raise RuntimeError("it runs already: each application needs an object of its own")
        worker = self._worker = _StartedWorker(new_client(self._source), read=self._reads)
        try:
            await worker.client.connect()
            if self._ready == "connected":
                await worker.client.wait_ready(self._ready_timeout)
        except BaseException:  # a cancellation too
            await self.stop()
            raise
        return worker.client

    def start_jobs(self) -> None:
        """Make this worker a candidate for its background tasks."""
        worker = self._running()
        worker.jobs = LeaderJobs(worker.client, tuple(self._jobs.values()))

    async def stop_jobs(self) -> None:
        """End the background tasks within `shutdown_timeout`; other workers take over. Safe to repeat."""
        worker = self._own()
        if worker is not None and worker.jobs is not None:
            jobs = worker.jobs
            await jobs.stop(self._shutdown_timeout)
            if worker.jobs is jobs:
                worker.jobs = None

    async def stop(self) -> None:
        """End the background tasks, and close the client: locks are released and leases are revoked. Safe to repeat.

        Cancellation: the client is closed all the same.
        """
        worker = self._own()
        if worker is None:
            return
        try:
            await self.stop_jobs()
            await worker.check.aclose()
        finally:
            self._worker = None
            await worker.client.aclose()

    def _own(self) -> _StartedWorker | None:
        """The worker started in this process, not one inherited by a fork."""
        worker = self._worker
        return worker if worker is not None and worker.process == os.getpid() else None

    def _running(self) -> _StartedWorker:
        worker = self._own()
        if worker is None:
            raise self.not_running()
        return worker

    @classmethod
    def not_running(cls) -> RuntimeError:
        """The error of a use while the application does not run."""
        return RuntimeError(f"there is no etcd client, since the application does not run with it: {cls.wiring}")

    # In requests.

    @property
    def client(self) -> Client:
        """The client of this worker.

        Raises:
            RuntimeError: the application does not run, or not with this object.
        """
        return self._running().client

    @property
    def details(self) -> bool:
        """Whether the answer to a readiness probe has addresses and error texts."""
        return self._details

    async def readiness(self) -> Readiness:
        """Check whether requests that need etcd can be served: at most once a second, however many ask.

        A member must be connected and, unless `read=False`, answer a linearizable read of a key within a second.

        Raises:
            RuntimeError: the application does not run, or not with this object.
        """
        return await self._running().check.ask()

    # Of one worker among all.

    def leader_only(self, name: KeyLike, *, ttl: int = 10) -> Callable[[AnyWork], AnyWork]:
        """Let one worker at a time run a function in the background: `@etcd.leader_only("nightly")`.

            @etcd.leader_only("nightly")
            async def nightly(leadership: Leadership) -> None:
                while True:
                    await leadership.fenced.put("report", ...)
                    await asyncio.sleep(3600)

        All workers of all hosts are candidates of an election; the leader runs the function. It is cancelled
        before the lease can end, and the next leader runs it again. If it returns, its worker goes on to lead, so that
        it is not run again before that worker stops. If it raises, that is logged, another worker takes over, and this
        one is a candidate again after a pause of 1 to 60 seconds.

        Args:
            name: of the election.
            ttl: seconds until another worker may run it after a crash of the leader. Default: 10, as of locks.

        Returns:
            A decorator, which returns the function as it is.

        Raises:
            ValueError: another function has this name.
            RuntimeError: the application runs already.
            TypeError: the decorated object is not a coroutine function.
        """
        key = encode_key(name, "name")
        whole_number(ttl, "ttl", minimum=1)

        def register(work: AnyWork) -> AnyWork:
            if not inspect.iscoroutinefunction(work):
                raise TypeError("leader_only is for a coroutine function: `async def`")
            if key in self._jobs:
                raise ValueError(f"there is a background task {self._jobs[key].shown} of this name already")
            if self._own() is not None:
                raise RuntimeError("register background tasks before the application starts")
            self._jobs[key] = LeaderJob(name, ttl, work)
            return work

        return register

    def singleton(self, name: KeyLike, *, ttl: int = 10) -> Singleton:
        """A block that one worker of all runs once: `async with etcd.singleton("migrate-7") as won:`.

        Args:
            name: of the lock; the key `<name>/done` says that it is done.
            ttl: seconds until another worker may win after a crash of the winner. Default: 10, as of locks.

        Raises:
            RuntimeError: the application does not run, or not with this object.
        """
        return Singleton(self.client, name, ttl=ttl)
