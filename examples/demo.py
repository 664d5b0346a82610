"""A cluster with failing members, and what the callers of one client see of it: `python examples/demo.py`.

Starts three real etcd members on this machine. One client with default settings reads and writes all the time, while
the members are killed, stopped, frozen and restarted one after the other. At the end the store is compared with the
results of the calls. The exit status is 0 if no read failed or was stale, no acknowledged write is missing, and none
was applied twice.
"""

import argparse
import asyncio
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from rich.console import Console
from stage.load import CALLS_PER_SECOND, Load
from stage.report import numbers, report, verdict
from stage.screen import Actor, LiveScreen, PlainScreen, Scene, Screen

from etcd_aio import Client
from etcd_aio.testing import EtcdCluster, EtcdServer

FRAME = 0.25  # seconds between two updates of the screen


class Demonstration:
    """Runs the acts in order.

    Args:
        cluster: three members.
        client: a client of all three.
        screen: shows the acts.
        seconds: the approximate length of all acts together, without the time that members need to start.
    """

    def __init__(self, cluster: EtcdCluster, client: Client, screen: Screen, seconds: float) -> None:
        self.cluster = cluster
        self.client = client
        self.load = Load(client)
        self.screen = screen
        self.seconds = seconds
        self.actors = {member.name: Actor(member.name) for member in cluster.members}
        self.scene = Scene(cluster.members[0].version, list(self.actors.values()), CALLS_PER_SECOND * FRAME / 2)
        self.member_ids: dict[str, int] = {}
        self.account = self.load.account  # of the current act

    async def play(self) -> tuple[bool, str]:
        """Run all acts. Returns whether every promise was kept, and the summary."""
        for member in self.cluster.members:
            self.member_ids[member.name] = (await member.raft_status()).member_id
        await self.load.prepare()
        async with asyncio.TaskGroup() as tasks:
            watching = [tasks.create_task(self.watch_leader()), tasks.create_task(self.watch_calls())]
            running = tasks.create_task(self.load.run())
            await self.acts()
            self.load.stop()
            await running
            for task in watching:
                task.cancel()
        return verdict(self.load.accounts, await self.load.check(), self.scene.version)

    async def acts(self) -> None:
        """Kill, stop and freeze members."""
        async with self.act("All three serve"):
            await self.wait(0.1)
        first, second = await self.cluster.followers()
        async with self.act(f"{first.name}, a follower, is killed (SIGKILL), and started again"):
            await self.down(first, "killed", first.kill)
        async with self.act(f"{second.name}, a follower, is stopped as for an upgrade (SIGTERM), and started again"):
            await self.down(second, "stopped", second.terminate)
        frozen = (await self.cluster.followers())[0]
        async with self.act(f"{frozen.name}, a follower, freezes (SIGSTOP): connected but silent; then it resumes"):
            self.actors[frozen.name].condition = "frozen"
            frozen.pause()
            await self.wait(0.2)
            frozen.resume()
            self.actors[frozen.name].condition = "running"
            await self.wait(0.08)
        leader = await self.cluster.leader()
        async with self.act(f"{leader.name}, the leader, is killed (SIGKILL); the others elect; it is started again"):
            await self.down(leader, "killed", leader.kill)
        async with self.act("All three serve again"):
            await self.wait(0.06)

    async def down(self, member: EtcdServer, condition: str, end: Callable[[], Awaitable[None]]) -> None:
        """End a member, continue without it, start it again."""
        actor = self.actors[member.name]
        actor.condition = condition
        await end()
        await self.wait(0.1)
        actor.condition = "starting"
        await member.restart()
        await self.cluster.wait_healthy()
        actor.condition = "running"
        await self.wait(0.06)

    @asynccontextmanager
    async def act(self, title: str) -> AsyncIterator[None]:
        """Run one act. Its calls are counted in one account, which is shown when all of them have ended."""
        self.account, self.scene.title = self.load.account, title
        self.screen.turn(self.scene)
        yield
        await self.load.close_account()
        self.scene.finished.append((title, report(self.account, await self.load.read_back(self.account))))
        self.scene.title = ""
        self.screen.turn(self.scene)

    async def wait(self, part: float) -> None:
        """Let the load run for this fraction of the whole time."""
        await asyncio.sleep(part * self.seconds)

    async def watch_leader(self) -> None:
        """Show the leader, while a majority of the members agrees on one."""
        while True:
            try:
                leader = (await self.cluster.leader(timeout=0)).name
            except TimeoutError:
                leader = ""
            for actor in self.actors.values():
                actor.is_leader = actor.name == leader
            await asyncio.sleep(FRAME)

    async def watch_calls(self) -> None:
        """Show the connections, and which members answer."""
        while True:
            for actor, connection in zip(self.actors.values(), self.client.statistics(), strict=True):
                actor.connection = connection.state
                actor.count(self.load.answers[self.member_ids[actor.name]])
            self.scene.numbers = numbers(self.account)
            self.screen.show(self.scene)
            await asyncio.sleep(FRAME)


async def main(seconds: float) -> bool:
    console = Console()
    print("starting three etcd members on this machine ...", flush=True)
    async with EtcdCluster(size=3) as cluster, Client(cluster.endpoints) as client:
        with LiveScreen(console) if console.is_terminal else PlainScreen() as screen:
            is_good, summary = await Demonstration(cluster, client, screen, seconds).play()
        console.print(summary, style="green" if is_good else "bold red", highlight=False, soft_wrap=True)
        return is_good


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description="A cluster with failing members, and what the callers of one client see of it."
    )
    parser.add_argument(
        "--seconds", type=float, default=30.0, help="approximate length of all acts together (default: 30)"
    )
    try:
        sys.exit(0 if asyncio.run(main(parser.parse_args().seconds)) else 1)
    except KeyboardInterrupt:
        print("interrupted; the members are gone", file=sys.stderr)
        sys.exit(130)  # the exit status of a shell after Ctrl-C
