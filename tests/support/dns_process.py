"""A DNS server in a process of its own, which answers every name alike and tells when each query came.

    python -m tests.support.dns_process 127.0.0.1 5       the address, and the TTL in seconds

It prints its port, and one line for each query when its standard input ends: the seconds of the monotonic clock, the
type and the name. Since no client shares its event loop, its times are those at which queries were sent.
"""

import asyncio
import socket
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

import dns.flags
import dns.message
import dns.rdatatype
import dns.rrset

from tests.support.dns_stub import asks

_BUFFER: Final = 2**23  # bytes; the queries of many clients may come at one instant


class DnsProcess:
    """The server, as the test sees it.

    Attributes:
        queries: when each query came, its type and its name; known at the end.
    """

    def __init__(self) -> None:
        self.queries: list[tuple[float, str, str]] = []


@asynccontextmanager
async def dns_process(address: str, ttl: int) -> AsyncIterator[DnsProcess]:
    """Run the server; dnspython sends the queries of this process to it."""
    found = DnsProcess()
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.support.dns_process", address, str(ttl)),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        limit=2**24,
    )
    try:
        assert process.stdout is not None
        port = int(await asyncio.wait_for(process.stdout.readline(), 60))
        with asks("127.0.0.1", port):
            yield found
        lines, _ = await asyncio.wait_for(process.communicate(b""), 60)
        for line in lines.decode().splitlines():
            at, kind, name = line.split()
            found.queries.append((float(at), kind, name))
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


def _serve(address: str, ttl: int) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _BUFFER)
        server.bind(("127.0.0.1", 0))
        server.settimeout(0.1)
        print(server.getsockname()[1], flush=True)
        queries: list[str] = []
        ended: list[str] = []
        threading.Thread(target=lambda: ended.append(sys.stdin.read()), daemon=True).start()
        while not ended:
            try:
                data, peer = server.recvfrom(4096)
            except TimeoutError:
                continue
            at = time.monotonic()
            query = dns.message.from_wire(data)
            (question,) = query.question
            kind = dns.rdatatype.to_text(question.rdtype)
            reply = dns.message.make_response(query)
            reply.flags |= dns.flags.RA
            if kind == "A":
                reply.answer.append(dns.rrset.from_text(question.name, ttl, "IN", "A", address))
            server.sendto(reply.to_wire(), peer)
            queries.append(f"{at} {kind} {question.name.to_text(omit_final_dot=True)}")
        print("\n".join(queries), flush=True)


if __name__ == "__main__":
    _serve(sys.argv[1], int(sys.argv[2]))
