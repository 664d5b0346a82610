"""A DNS server on loopback with scripted answers.

async with DnsStub() as stub:
    stub.says("_etcd-client._tcp.example.com", srv(0, 0, 2379, "m1.example.com"), ttl=5)
    stub.fails(Rcode.SERVFAIL)         every query from now on; `None` ends it
    stub.is_silent = True              queries get no answer
    stub.asked                         the queried names, in order
"""

import asyncio
from types import TracebackType
from typing import Self

import dns.asyncresolver
import dns.flags
import dns.message
import dns.rcode
import dns.rrset


def srv(priority: int, weight: int, port: int, target: str) -> str:
    """A record as text."""
    return f"{priority} {weight} {port} {target}."


class DnsStub(asyncio.DatagramProtocol):
    """The server. While it is entered, dnspython sends the queries of this process to it."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.is_silent = False
        self._records: dict[str, tuple[tuple[str, ...], int]] = {}
        self._rcode: dns.rcode.Rcode | None = None
        self._transport: asyncio.DatagramTransport | None = None

    def says(self, name: str, *records: str, ttl: int = 60) -> None:
        """Set the records of a name; without records it does not exist."""
        self._records[name] = records, ttl

    def fails(self, rcode: dns.rcode.Rcode | None) -> None:
        """Answer every query with this failure."""
        self._rcode = rcode

    async def __aenter__(self) -> Self:
        loop = asyncio.get_running_loop()
        self._transport, _ = await loop.create_datagram_endpoint(lambda: self, ("127.0.0.1", 0))
        resolver = dns.asyncresolver.Resolver(configure=False)
        resolver.nameservers = ["127.0.0.1"]
        resolver.port = self._transport.get_extra_info("sockname")[1]
        self._before = dns.asyncresolver.default_resolver
        dns.asyncresolver.default_resolver = resolver  # type: ignore[assignment]  # declared without its type there
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        dns.asyncresolver.default_resolver = self._before
        if self._transport is not None:
            self._transport.close()

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        """See `asyncio.DatagramProtocol`."""
        query = dns.message.from_wire(data)
        (question,) = query.question
        name = question.name.to_text(omit_final_dot=True)
        self.asked.append(name)
        if self.is_silent:
            return
        reply = dns.message.make_response(query)
        reply.flags |= dns.flags.RA
        records, ttl = self._records.get(name, ((), 0))
        if self._rcode is not None:
            reply.set_rcode(self._rcode)
        elif records:
            reply.answer.append(dns.rrset.from_text_list(question.name, ttl, "IN", "SRV", records))
        else:
            reply.set_rcode(dns.rcode.NXDOMAIN)
        assert self._transport is not None
        self._transport.sendto(reply.to_wire(), addr)
