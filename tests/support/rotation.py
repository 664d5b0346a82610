"""Certificates that are replaced while servers and clients use them, and a load that must not notice."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import trustme

from etcd_aio import TLS, Client
from etcd_aio.testing import ServerTLS

_PATIENCE = 60.0  # seconds


class Certificates:
    """The files of a server and of a client, of authorities that both sides know.

    Args:
        folder: where they are.
        lifetime: seconds for which a certificate is valid.
        authorities: how many there are. With several, each certificate is of the next one; the servers trust all of
            them from the start, and the bundle of the client has the one in use and the next.
    """

    def __init__(self, folder: Path, *, lifetime: float = 20.0, authorities: int = 1) -> None:
        self.rotations = 0
        self._folder = folder
        self._lifetime = lifetime
        self._authorities = [trustme.CA() for _ in range(authorities)]
        trusted = folder / "trusted.pem"
        trusted.write_bytes(b"".join(one.cert_pem.bytes() for one in self._authorities))
        self.server = ServerTLS(folder / "server.pem", folder / "server.key", trusted)
        self.replace()

    def tls(self, *, reconnect: bool = True) -> TLS:
        """The options of a client."""
        folder = self._folder
        return TLS(ca=folder / "ca.pem", cert=folder / "client.pem", key=folder / "client.key", reconnect=reconnect)

    def replace(self) -> None:
        """Replace all files, one after the other: the client's bundle comes first."""
        many = len(self._authorities)
        issuer, following = (self._authorities[(self.rotations + more) % many] for more in (0, 1))
        bundle = [issuer] if issuer is following else [issuer, following]
        self._write("ca.pem", b"".join(one.cert_pem.bytes() for one in bundle))
        end = datetime.now(UTC) + timedelta(seconds=self._lifetime)
        for name, subject in (("server", "127.0.0.1"), ("client", "client@example.org")):
            leaf = issuer.issue_cert(subject, "localhost", not_after=end)
            self._write(f"{name}.key", leaf.private_key_pem.bytes())
            self._write(f"{name}.pem", b"".join(pem.bytes() for pem in leaf.cert_chain_pems))
        self.rotations += 1

    def _write(self, name: str, content: bytes) -> None:
        written = self._folder / f"{name}.new"
        written.touch(0o600)
        written.write_bytes(content)
        written.replace(self._folder / name)

    @asynccontextmanager
    async def replaced_every(self, seconds: float) -> AsyncIterator[None]:
        """Replace the files during the block."""

        async def keep_replacing() -> None:
            while True:
                await asyncio.sleep(seconds)
                self.replace()

        task = asyncio.create_task(keep_replacing(), name="rotation")
        try:
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


@dataclass
class Report:
    """What came of a load.

    Attributes:
        calls: how many calls were answered.
        failed: the errors of the others.
        puts: how many puts were answered.
        seen: the values that the watch told, in order.
        is_lease_held: whether the lease was held to the end.
        is_lock_held: whether the lock was.
        is_leader: whether the leadership was.
        cached: the last value in the cache.
        connects: connections of each endpoint.
        most_open: the largest number of connections to one endpoint at once.
        expired: connections that were seen with an expired certificate.
    """

    calls: int = 0
    failed: list[BaseException] = field(default_factory=list)
    puts: int = 0
    seen: list[int] = field(default_factory=list)
    is_lease_held: bool = False
    is_lock_held: bool = False
    is_leader: bool = False
    cached: int = -1
    connects: list[int] = field(default_factory=list)
    most_open: int = 0
    expired: int = 0

    def check(self) -> None:
        """Nothing was lost."""
        assert not self.failed
        assert self.seen == list(range(self.puts)), "every event once, in order"
        assert self.is_lease_held
        assert self.is_lock_held
        assert self.is_leader
        assert self.cached == self.puts - 1
        assert self.expired == 0


async def load(client: Client, seconds: float, connects: int) -> Report:
    """Gets, puts, a watch, a lease that is kept alive, a lock, a leadership and a cache.

    Args:
        client: the client, of one endpoint.
        seconds: for how long.
        connects: how many connections there must be by then; a slow machine has a minute more to make them.
    """
    report = Report()
    loop = asyncio.get_running_loop()
    end = loop.time() + seconds

    def goes_on() -> bool:
        is_late = client.statistics()[0].connects < connects
        return loop.time() < end + (_PATIENCE if is_late else 0.0)

    async def keep_getting() -> None:
        while goes_on():
            try:
                await client.get("load/leased")
                report.calls += 1
            except Exception as error:  # whatever it is, it counts as a failed call
                report.failed.append(error)
            await asyncio.sleep(0.002)

    async def keep_putting() -> None:
        while goes_on():
            try:
                await client.put("load/number", str(report.puts))
                report.calls += 1
                report.puts += 1
            except Exception as error:  # whatever it is, it counts as a failed call
                report.failed.append(error)
            await asyncio.sleep(0.002)

    async def keep_looking() -> None:
        while goes_on():
            for sub_connection in client._balancer._pool.current.values():
                report.most_open = max(report.most_open, len(sub_connection._live))
                report.expired += sum(map(_is_expired, sub_connection._live))
            await asyncio.sleep(0.05)

    async def keep_watching(watcher: AsyncIterator[object]) -> None:
        async for event in watcher:
            report.seen.append(int(event.value))  # type: ignore[attr-defined]

    async with (
        client.lease(10) as lease,
        client.lock("load/lock", ttl=10) as lock,
        client.election("load/election", ttl=10).lead("a") as leadership,
        client.cache(prefix="load/number") as cache,
    ):
        await client.put("load/leased", "x", lease=lease)
        async with client.watch("load/number") as watcher:
            watching = asyncio.create_task(keep_watching(watcher))
            await asyncio.gather(keep_getting(), keep_getting(), keep_putting(), keep_looking())
            async with asyncio.timeout(_PATIENCE):
                while len(report.seen) < report.puts:  # noqa: ASYNC110 - nothing signals it
                    await asyncio.sleep(0.01)
            watching.cancel()
            await asyncio.gather(watching, return_exceptions=True)
        report.is_lease_held = lease.is_held and await client.get("load/leased") is not None
        report.is_lock_held = lock.is_held
        report.is_leader = leadership.is_held
        await cache.wait_current()
        report.cached = int(cache["load/number"].value)
    report.connects = [one.connects for one in client.statistics()]
    return report


def _is_expired(record: object) -> bool:
    certificates = record.certificates  # type: ignore[attr-defined]
    return certificates is not None and certificates.expiry[0] < time.time()
