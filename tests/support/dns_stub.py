"""A DNS server on loopback with scripted answers.

async with DnsStub() as stub:
    stub.says("_etcd-client._tcp.example.com", srv(0, 0, 2379, "m1.example.com"), ttl=5)
    stub.says("etcd.test", "10.0.0.1", "fd00::1")
    stub.says("www.etcd.test", "CNAME etcd.test")
    stub.fails(Rcode.SERVFAIL, "AAAA")   only queries of this type
    stub.fails(Rcode.SERVFAIL)         every query from now on; `None` ends it
    stub.fails_for["etcd.test"] = Rcode.SERVFAIL
    stub.is_silent = True              queries get no answer
    stub.silent_about = "AAAA"         those of this type get none
    stub.asked                         the queried names, in order
    stub.queries                       when each query came, its type and its name
"""

import asyncio
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from types import TracebackType
from typing import Self

import dns.asyncresolver
import dns.flags
import dns.message
import dns.rcode
import dns.rdatatype
import dns.rrset


@contextmanager
def asks(host: str, port: int) -> Iterator[None]:
    """While it is entered, dnspython sends the queries of this process to this server."""
    resolver = dns.asyncresolver.Resolver(configure=False)
    resolver.nameservers = [host]
    resolver.port = port
    before = dns.asyncresolver.default_resolver
    dns.asyncresolver.default_resolver = resolver  # type: ignore[assignment]  # declared without its type there
    try:
        yield
    finally:
        dns.asyncresolver.default_resolver = before


def srv(priority: int, weight: int, port: int, target: str) -> str:
    """A record as text."""
    return f"{priority} {weight} {port} {target}."


class DnsStub(asyncio.DatagramProtocol):
    """The server. While it is entered, dnspython sends the queries of this process to it."""

    def __init__(self) -> None:
        self.queries: list[tuple[float, str, str]] = []
        self.is_silent = False
        self.silent_about = ""
        self._records: dict[str, tuple[tuple[str, ...], int]] = {}
        self._failures: dict[str, dns.rcode.Rcode] = {}
        self.fails_for: dict[str, dns.rcode.Rcode] = {}
        self._transport: asyncio.DatagramTransport | None = None
        self._stack = ExitStack()
        self.port = 0

    @property
    def asked(self) -> list[str]:
        """The queried names, in order."""
        return [name for _, _, name in self.queries]

    def says(self, name: str, *records: str, ttl: int = 60) -> None:
        """Set the records of a name; without records it does not exist."""
        self._records[name] = records, ttl

    def fails(self, rcode: dns.rcode.Rcode | None, kind: str = "") -> None:
        """Answer every query with this failure, or those of one type."""
        if rcode is None:
            self._failures.clear()
        else:
            self._failures[kind] = rcode

    async def __aenter__(self) -> Self:
        loop = asyncio.get_running_loop()
        self._transport, _ = await loop.create_datagram_endpoint(lambda: self, ("127.0.0.1", 0))
        self.port = self._transport.get_extra_info("sockname")[1]
        self._stack.enter_context(asks("127.0.0.1", self.port))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()
        self.close()

    def close(self) -> None:
        """End the server: its port refuses queries."""
        if self._transport is not None:
            self._transport.close()

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        """See `asyncio.DatagramProtocol`."""
        query = dns.message.from_wire(data)
        (question,) = query.question
        name, kind = question.name.to_text(omit_final_dot=True), dns.rdatatype.to_text(question.rdtype)
        self.queries.append((asyncio.get_running_loop().time(), kind, name))
        if self.is_silent or kind == self.silent_about:
            return
        reply = dns.message.make_response(query)
        reply.flags |= dns.flags.RA
        failure = self.fails_for.get(name, self._failures.get(kind, self._failures.get("")))
        if failure is not None:
            reply.set_rcode(failure)
        elif name not in self._records or not self._records[name][0]:
            reply.set_rcode(dns.rcode.NXDOMAIN)
        else:
            self._answer(reply, name, kind)
        assert self._transport is not None
        self._transport.sendto(reply.to_wire(), addr)

    def _answer(self, reply: dns.message.Message, name: str, kind: str) -> None:
        records, ttl = self._records.get(name, ((), 0))
        for record in records:
            if record.startswith("CNAME "):
                alias = record.removeprefix("CNAME ")
                reply.answer.append(dns.rrset.from_text(f"{name}.", ttl, "IN", "CNAME", f"{alias}."))
                self._answer(reply, alias, kind)
        found = [record for record in records if _type_of(record) == kind]
        if found:
            reply.answer.append(dns.rrset.from_text_list(f"{name}.", ttl, "IN", kind, found))


def _type_of(record: str) -> str:
    if record.count(" ") == 3:
        return "SRV"
    return "" if " " in record else "AAAA" if ":" in record else "A"
