"""A real DNS server on loopback, dnsmasq, whose records change while it runs.

async with Dnsmasq(ttl=1) as dns:
    await dns.says("etcd.test", "127.0.0.2", "127.0.0.3")
    dns.asked                                the lines of its log that tell of a query

While it is entered, dnspython sends the queries of this process to it. Skips the test if dnsmasq is not installed.
"""

import asyncio
import re
import shutil
import signal
import tempfile
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import dns.asyncresolver
import dns.exception
import pytest

from etcd_aio.testing.ports import free_ports
from tests.support.dns_stub import asks

_QUERY: Final = re.compile(r"query\[(A|AAAA)\] (\S+) from")


class Dnsmasq:
    """The server.

    Args:
        ttl: seconds, of every record.
        aliases: names that are aliases of others.

    Attributes:
        port: where it listens.
    """

    def __init__(self, *, ttl: int = 1, aliases: dict[str, str] | None = None) -> None:
        self._ttl = ttl
        self._aliases = aliases or {}
        self._records: dict[str, tuple[str, ...]] = {}
        self._stack = AsyncExitStack()
        self.port = 0

    async def says(self, name: str, *addresses: str) -> None:
        """Set the addresses of a name, and wait until the server has read them; without addresses it does not exist."""
        self._records[name] = addresses
        lines = [f"{address} {one}\n" for one, all_of_one in self._records.items() for address in all_of_one]
        self._hosts.write_text("".join(lines))
        before = self._times_read
        self._process.send_signal(signal.SIGHUP)
        async with asyncio.timeout(60):
            while self._times_read == before:  # noqa: ASYNC110 - a log gives no event
                await asyncio.sleep(0.01)

    @property
    def _times_read(self) -> int:
        return self._log.read_text().count(f"read {self._hosts} - ")

    @property
    def asked(self) -> list[tuple[str, str]]:
        """The types and names of all queries so far, in order."""
        return [match.group(1, 2) for match in _QUERY.finditer(self._log.read_text())]  # type: ignore[misc]

    async def __aenter__(self) -> Self:
        program = shutil.which("dnsmasq", path="/usr/sbin:/usr/local/sbin:/usr/bin:/usr/local/bin:/sbin:/bin")
        if program is None:
            pytest.skip("dnsmasq is not installed")
        folder = Path(self._stack.enter_context(tempfile.TemporaryDirectory()))
        self._hosts, self._log = folder / "hosts", folder / "log"
        self._hosts.write_text("127.9.9.9 started.test\n")
        self._log.touch()
        (self.port,) = free_ports(1, "127.0.0.1")
        arguments = [
            "--keep-in-foreground",
            "--conf-file=/dev/null",
            "--no-resolv",
            "--no-hosts",
            "--local=/test/",
            "--bind-interfaces",
            "--listen-address=127.0.0.1",
            f"--port={self.port}",
            f"--addn-hosts={self._hosts}",
            f"--local-ttl={self._ttl}",
            "--log-queries",
            f"--log-facility={self._log}",
            "--pid-file=",
            "--user=",
            *(f"--cname={name},{other}" for name, other in self._aliases.items()),
        ]
        self._process = await asyncio.create_subprocess_exec(
            program, *arguments, stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL
        )
        self._stack.push_async_callback(self._end)
        self._stack.enter_context(asks("127.0.0.1", self.port))
        async with asyncio.timeout(60):
            while not await self._answers():
                assert self._process.returncode is None, "dnsmasq did not start"
                await asyncio.sleep(0.02)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stack.aclose()

    async def _answers(self) -> bool:
        resolver = dns.asyncresolver.default_resolver
        assert resolver is not None
        with suppress(dns.exception.DNSException, OSError):
            await resolver.resolve("started.test.", "A", lifetime=0.3)
            return True
        return False

    async def _end(self) -> None:
        with suppress(ProcessLookupError):
            self._process.kill()
        await self._process.wait()
