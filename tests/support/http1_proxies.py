"""Reverse proxies that speak HTTP/1 only: nginx and HAProxy where they are installed, and a small one of our own."""

import asyncio
import shutil
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Final, Literal, TypeAlias

import pytest

from etcd_aio.testing.ports import free_ports
from tests.support.stream_server import stream_server

ProxyName: TypeAlias = Literal["ours", "nginx", "haproxy"]
PROXIES: Final[tuple[ProxyName, ...]] = ("ours", "nginx", "haproxy")

_NGINX: Final = """
daemon off; master_process off; pid {directory}/pid; error_log {directory}/log;
events {{}}
http {{
  access_log off; client_body_temp_path {directory}/b; proxy_temp_path {directory}/p;
  fastcgi_temp_path {directory}/f; uwsgi_temp_path {directory}/u; scgi_temp_path {directory}/s;
  client_max_body_size 8m;
  map $http_upgrade $connection_upgrade {{ default upgrade; '' ''; }}
  upstream etcd {{ {servers} keepalive 16; }}
  server {{
    listen 127.0.0.1:{port}{listen};
    location / {{
      proxy_pass http://etcd; proxy_http_version 1.1; proxy_set_header Host 127.0.0.1;
      {upgrade}
      proxy_buffering off; proxy_read_timeout 60s;
      {more}
    }}
  }}
}}
"""
_NGINX_UPGRADE: Final = "proxy_set_header Upgrade $http_upgrade; proxy_set_header Connection $connection_upgrade;"
_HAPROXY: Final = """
defaults
  mode http
  timeout connect 2s
  timeout client 60s
  timeout server 60s
  timeout tunnel 60s
frontend f
  bind 127.0.0.1:{port}{listen}
  {upgrade}
  default_backend b
backend b
  {servers}
  {more}
"""
_HAPROXY_NO_UPGRADE: Final = "http-request del-header Upgrade\n  http-request del-header Connection"


@asynccontextmanager
async def http1_proxy(
    name: ProxyName,
    endpoint: str,
    *others: str,
    listen: str | None = None,
    passes_websockets: bool = True,
    more: str = "",
) -> AsyncIterator[str]:
    """Run a proxy before an endpoint on this machine; yields its own. Skips the test if it is not installed.

    Args:
        name: of the proxy.
        endpoint: of the server.
        others: further ones, for nginx or HAProxy.
        listen: what nginx or HAProxy is told about its port; None for HTTP/1 in plain text.
        passes_websockets: whether nginx or HAProxy passes on the headers that ask for one.
        more: lines of nginx's location, or of HAProxy's backend.
    """
    ports = [int(one.rpartition(":")[2]) for one in (endpoint, *others)]
    if name == "ours":
        async with stream_server(Relay(ports[0]).serve) as port:
            yield f"http://127.0.0.1:{port}"
        return
    if shutil.which(name) is None:
        pytest.skip(f"{name} is not installed")
    (port,) = free_ports(1)
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / "conf"
        places = {"directory": directory, "port": port, "more": more}
        if name == "nginx":
            upgrade = _NGINX_UPGRADE if passes_websockets else ""
            servers = " ".join(f"server 127.0.0.1:{one} max_fails=0;" for one in ports)
            text = _NGINX.format(servers=servers, listen=f" {listen or ''}", upgrade=upgrade, **places)
        else:
            upgrade = "" if passes_websockets else _HAPROXY_NO_UPGRADE
            servers = "\n  ".join(f"server s{one} 127.0.0.1:{one}" for one in ports)
            text = _HAPROXY.format(
                servers=servers, listen=f" {'proto h1' if listen is None else listen}", upgrade=upgrade, **places
            )
        file.write_text(text)
        arguments = ["-c", str(file), "-p", directory] if name == "nginx" else ["-f", str(file)]
        process = await asyncio.create_subprocess_exec(
            name, *arguments, stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL
        )
        try:
            await until_listening(port, process)
            yield f"http://127.0.0.1:{port}"
        finally:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()


async def until_listening(port: int, process: asyncio.subprocess.Process) -> None:
    """Wait until a process listens at a port."""
    async with asyncio.timeout(60):
        while True:
            assert process.returncode is None, "the proxy did not start"
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", port)
            except OSError:
                await asyncio.sleep(0.02)
            else:
                writer.close()
                return


class Relay:
    """Passes on what begins as HTTP/1, and answers HTTP/2 as HTTP/1 servers do.

    Args:
        server: the port of the server.

    Attributes:
        passes_http2: it passes on everything.
    """

    def __init__(self, server: int) -> None:
        self._server = server
        self._open: set[asyncio.StreamWriter] = set()
        self.passes_http2 = False

    def cut(self) -> None:
        """End all connections."""
        for writer in self._open:
            writer.transport.abort()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one socket."""
        first = await reader.read(2**16)
        if not first or (first.startswith(b"PRI ") and not self.passes_http2):
            writer.write(
                b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n" if first else b""
            )
            writer.close()
            return
        try:
            upstream, to_server = await asyncio.open_connection("127.0.0.1", self._server)
        except OSError:
            writer.write(b"HTTP/1.1 502 Bad Gateway\r\nServer: ours\r\nContent-Length: 0\r\n\r\n")
            writer.close()
            return
        self._open.add(writer)
        to_server.write(first)
        try:
            await copy_both_ways((reader, to_server), (upstream, writer))
        finally:
            self._open.discard(writer)
            for end in (to_server, writer):
                end.transport.abort()


async def copy_both_ways(*ways: tuple[asyncio.StreamReader, asyncio.StreamWriter]) -> None:
    """Copy from each reader to its writer until one of them ends."""
    copies = [asyncio.ensure_future(_copy(*way)) for way in ways]
    try:
        await asyncio.wait(copies, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for copy in copies:
            copy.cancel()
        await asyncio.wait(copies)


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(ConnectionError):
        while data := await reader.read(2**16):
            writer.write(data)
            await writer.drain()
