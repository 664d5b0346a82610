"""Proxies of others, through which clients go out: tinyproxy (HTTP CONNECT), Dante and microsocks (SOCKS 5)."""

import asyncio
import os
import shutil
import signal
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Final

import pytest

from etcd_aio.testing.ports import free_ports
from tests.support.http1_proxies import until_listening

SECRET: Final = "c4n4ry"
USER: Final = "me"
ENCODED: Final = "me:c4n%34ry"

_TINYPROXY: Final = """
Port {port}
Listen 127.0.0.1
Timeout {idle}
MaxClients 500
LogFile "{directory}/log"
{more}
"""
_DANTE: Final = """
logoutput: /dev/null
internal: 127.0.0.1 port = {port}
external: lo
clientmethod: none
socksmethod: none
client pass {{ from: 0.0.0.0/0 to: 0.0.0.0/0 }}
{more}
socks pass {{ from: 0.0.0.0/0 to: 0.0.0.0/0 }}
"""
PROGRAMS: Final = {"tinyproxy": "http", "danted": "socks5", "microsocks": "socks5"}
"""The programs, with the scheme of the URLs for each."""


class ForwardProxy:
    """A proxy, which can be killed and started again at the same port.

    Args:
        program: one of `PROGRAMS`.
        directory: for its files.
        has_password: whether it wants `USER` and `SECRET`; not for Dante, whose users are those of the system.
        idle: seconds after which tinyproxy closes what is idle.
        more: further lines of its configuration.
    """

    def __init__(self, program: str, directory: Path, *, has_password: bool, idle: int, more: str) -> None:
        (self.port,) = free_ports(1)  # which no client takes while it is killed
        self._program = program
        self._process: asyncio.subprocess.Process | None = None
        file = directory / "conf"
        if program == "microsocks":
            users = ["-u", USER, "-P", SECRET] if has_password else []
            self._command = [program, "-i", "127.0.0.1", "-p", str(self.port), *users]
            return
        if program == "tinyproxy" and has_password:
            more += f"\nBasicAuth {USER} {SECRET}"
        text = _TINYPROXY if program == "tinyproxy" else _DANTE
        file.write_text(text.format(port=self.port, directory=directory, idle=idle, more=more))
        self._command = [program, "-d", "-c", str(file)] if program == "tinyproxy" else [program, "-f", str(file)]

    def url(self, credentials: str = "", *, scheme: str = "") -> str:
        """Its URL.

        Args:
            credentials: percent-encoded name and password.
            scheme: another one than usual.
        """
        place = f"127.0.0.1:{self.port}"
        return f"{scheme or PROGRAMS[self._program]}://{f'{credentials}@' if credentials else ''}{place}"

    async def start(self) -> None:
        """Start it, and wait until it listens."""
        self._process = await asyncio.create_subprocess_exec(
            *self._command, stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL, start_new_session=True
        )
        await until_listening(self.port, self._process)

    async def kill(self) -> None:
        """Kill it, with the processes of Dante."""
        process = self._process
        if process is None:
            return
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()


@asynccontextmanager
async def forward_proxy(
    program: str, *, has_password: bool = False, idle: int = 600, more: str = ""
) -> AsyncIterator[ForwardProxy]:
    """Run a proxy. Skips the test if the program is not installed. See `ForwardProxy`."""
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not installed")
    with tempfile.TemporaryDirectory() as directory:
        proxy = ForwardProxy(program, Path(directory), has_password=has_password, idle=idle, more=more)
        try:
            await proxy.start()
            yield proxy
        finally:
            await proxy.kill()
