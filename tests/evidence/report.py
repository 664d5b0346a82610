"""Writes one report: members, clients and faults as planned, until enough is recorded."""

import asyncio
import platform
import shutil
import time
from contextlib import AsyncExitStack
from dataclasses import asdict
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, Final

import trustme

from etcd_aio import TLS, Client
from etcd_aio._version import __version__
from etcd_aio.testing import EtcdCluster, FaultProxy, ServerTLS
from tests.evidence.once import Once
from tests.evidence.plan import Plan
from tests.evidence.recorded import Recorded
from tests.evidence.recorder import Recorder
from tests.evidence.traffic import OPERATOR, STEM, WAYS, Shared, Worker
from tests.evidence.trouble import Trouble
from tests.evidence.watchers import Ending, Follower
from tests.support.auth import QUICK_LOGINS, ROOT, enable_auth, jwt_flag
from tests.support.certificates import write_ca, write_leaf

if TYPE_CHECKING:
    from collections.abc import Callable

_TIMEOUT: Final = 3.0  # of a call
_QUIET_SECONDS: Final = 120.0  # until all watches have reached the end
_OPERATOR_RATE: Final = 3.0
_ALL_ENTRIES: Final = "1000000000"  # no snapshot: the log holds all that was proposed


class Report:
    """One report in the making.

    Args:
        plan: what to do.
        folder: gets it; empty.
    """

    def __init__(self, plan: Plan, folder: Path) -> None:
        self._plan = plan
        self._folder = folder
        self._random = Random(f"{plan.name}")
        self._stack = AsyncExitStack()
        self._options: dict[str, Any] = {}
        self._ending = Ending()

    async def write(self) -> dict[str, Any]:
        """Write it. Returns the facts."""
        plan, began = self._plan, time.monotonic()
        async with self._stack as stack:
            cluster = await self._start()
            proxies = [await stack.enter_async_context(FaultProxy(member.endpoint)) for member in cluster.members]
            operator = await self._client(cluster.endpoints, "round_robin")
            recorder = Recorder(self._folder)
            shared = Shared(recorder)
            direct = Recorded(operator, recorder)
            await direct.range(f"{STEM}0")  # at revision 1: etcd's judge wants to know that there was nothing before
            deadline = time.monotonic() + plan.size.seconds
            workers = [await self._worker(number, cluster, proxies, shared) for number in range(len(plan.ways))]
            followers = [await self._follower(number, cluster, proxies, shared) for number in range(plan.watchers)]
            trouble = Trouble(
                cluster,
                operator,
                proxies,
                self._folder,
                Random(f"{plan.name}/faults"),
                plan.size.rest,
                lambda: shared.revision,
            )

            def is_over() -> bool:
                return recorder.operations >= plan.size.operations or time.monotonic() > deadline

            async with asyncio.timeout(plan.size.seconds + 2 * _QUIET_SECONDS), asyncio.TaskGroup() as following:
                for number, follower in enumerate(followers):
                    following.create_task(follower.run(), name=f"follower {number}")
                async with asyncio.TaskGroup() as working:
                    for number, worker in enumerate(workers):
                        steps = WAYS[plan.ways[number]]
                        working.create_task(worker.run(steps, is_over), name=f"worker {number}")
                    compacting = Worker(operator, direct, STEM, shared, Random(f"{plan.name}/operator"), _OPERATOR_RATE)
                    working.create_task(compacting.run(OPERATOR, is_over), name="operator")
                    working.create_task(trouble.go_on(plan.faults, is_over), name="trouble")
                for worker in workers:
                    if worker.once is not None:
                        await worker.once.settle()
                last = await direct.put(f"{STEM}1", "the last value", timeout=_QUIET_SECONDS)
                self._ending.revision = last.header.revision
            seconds = time.monotonic() - began
            facts = self._facts(cluster, recorder, followers, trouble, seconds)
            recorder.write(facts)
            await self._close(workers)
            for member in cluster.members:
                await member.kill()
                member.data_dir.rename(self._folder / f"server-{member.name}")
        shutil.rmtree(self._folder / "servers")
        for stored in self._folder.glob("server-*/member/snap"):
            shutil.rmtree(stored)  # the judge reads the logs alone
        for spare in self._folder.glob("server-*/member/wal/*.tmp"):
            spare.unlink()  # allocated for the next part of a log
        return facts

    def _facts(
        self,
        cluster: EtcdCluster,
        recorder: Recorder,
        followers: list[Follower],
        trouble: Trouble,
        seconds: float,
    ) -> dict[str, Any]:
        return {
            "plan": asdict(self._plan),
            "versions": {
                "etcd": cluster.members[0].version,
                "etcd_aio": __version__,
                "python": platform.python_version(),
            },
            "counts": dict(recorder.counts),
            "errors": dict(recorder.errors),
            "faults": dict(trouble.counts),
            **{
                name: sum(getattr(follower, name) for follower in followers)
                for name in ("watches", "reconnects", "pauses", "resyncs", "compactions")
            },
            "seconds": round(seconds, 1),
        }

    # The parts.

    async def _start(self) -> EtcdCluster:
        plan, secrets = self._plan, self._folder / "secrets"
        secrets.mkdir()
        word = "" if plan.release >= "3.6" else "experimental-"
        flags = [f"--snapshot-count={_ALL_ENTRIES}", f"--{word}watch-progress-notify-interval=500ms"]
        tls = None
        if plan.has_auth:
            flags += [jwt_flag(secrets), QUICK_LOGINS]
            self._options |= {"auth": ROOT, "allow_insecure_auth": True}
        if plan.has_tls:
            authority = trustme.CA()
            leaf = write_leaf(authority.issue_cert("127.0.0.1"), secrets, "server")
            tls = ServerTLS(leaf["cert"], leaf["key"])
            self._options["tls"] = TLS(ca=write_ca(authority, secrets / "ca.pem"))
        cluster = EtcdCluster(
            peer_proxies=True,
            version=plan.release,
            flags=flags,
            heartbeat_ms=50,
            election_ms=500,
            tls=tls,
            directory=self._folder / "servers",
            env={"GOMAXPROCS": "1"},
            start_timeout=60.0,
        )
        await self._stack.enter_async_context(cluster)
        if plan.has_auth:
            await enable_auth(cluster.members[0])
        return cluster

    async def _client(self, endpoints: Any, policy: str) -> Client:
        plan = self._plan
        client = Client(
            endpoints,
            timeout=_TIMEOUT,
            engine=plan.engine,  # type: ignore[arg-type] # one of their names
            policy=policy,  # type: ignore[arg-type] # as well
            hedge_after=plan.hedge_after,
            **self._options,
        )
        return await self._stack.enter_async_context(client)

    def _endpoints(self, number: int, cluster: EtcdCluster, proxies: list[FaultProxy]) -> list[str]:
        """Every other client reaches the members through proxies."""
        return [proxy.endpoint for proxy in proxies] if number % 2 == 0 else list(cluster.endpoints)

    async def _worker(self, number: int, cluster: EtcdCluster, proxies: list[FaultProxy], shared: Shared) -> Worker:
        plan, way = self._plan, self._plan.ways[number]
        client = await self._client(self._endpoints(number, cluster, proxies), plan.policies[number])
        recorder = shared.recorder
        store, stem = Recorded(client, recorder), STEM
        if way == "namespace":
            store, stem = Recorded(client.namespace(STEM), recorder, prefix=STEM), ""
        elif way == "ordered":
            store = Recorded(client.ordered(), recorder)
        worker = Worker(client, store, stem, shared, Random(f"{plan.name}/{number}"), plan.size.rate)
        if way == "exactly once":
            worker.once = Once(client, recorder)
            await worker.once.start()
        elif way == "cache":
            worker.cache = await self._stack.enter_async_context(client.cache(prefix=STEM))
        return worker

    async def _follower(self, number: int, cluster: EtcdCluster, proxies: list[FaultProxy], shared: Shared) -> Follower:
        plan = self._plan
        client = await self._client(self._endpoints(number, cluster, proxies), plan.policies[number])
        chance = Random(f"{plan.name}/follower {number}")
        ending = self._ending
        if number % 3 == 2:
            return Follower(client.namespace(STEM), "", STEM, shared, ending, chance)
        store = client.ordered() if number % 3 == 1 else client
        return Follower(store, STEM, "", shared, ending, chance, lasting=number == 0)

    async def _close(self, workers: list[Worker]) -> None:
        for worker in workers:
            if worker.cache is not None:
                await worker.cache.aclose()
            if worker.once is not None:
                await worker.once.aclose()


def run(plan: Plan, folder: Path) -> dict[str, Any]:
    """Write the report of a plan into a folder, on its event loop."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    factory: Callable[[], asyncio.AbstractEventLoop] | None = None
    if plan.loop == "uvloop":
        import uvloop

        factory = uvloop.new_event_loop
    with asyncio.Runner(loop_factory=factory) as runner:
        return runner.run(Report(plan, folder).write())
