"""Looks up the addresses of a name in the hosts file and then in DNS, by dnspython, which is an extra.

The name servers, the search domains and ndots are those of resolv.conf. The search is that of Go: it goes on after a
name without addresses, and after one for which the name servers have an error. dnspython would end it there.
"""

import asyncio
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from etcd_aio.base.aio import start_background_task
from etcd_aio.base.threads import in_thread
from etcd_aio.discovery.addresses import AddressAnswer, FamilyAnswer, listed_addresses, search_names
from etcd_aio.errors import DiscoveryError, sanitize

if TYPE_CHECKING:
    import dns.asyncresolver

HOSTS_TTL: Final = 30.0  # seconds after which the hosts file is read again
_DEFAULT_NDOTS: Final = 1  # as of resolv.conf
_SECOND_FAMILY: Final = 1.0  # seconds for the answer of one family after that of the other is enough


async def address_lookup(name: str, timeout: float) -> AddressAnswer:
    """Look up a name; the name servers are those of this machine, or of `dns.asyncresolver.default_resolver`.

    Args:
        name: the name; with a final dot it is complete.
        timeout: seconds.

    Raises:
        DiscoveryError: the name servers of this machine are not known, or its hosts file was not read in time.
    """
    clock = asyncio.get_running_loop().time
    deadline = clock() + timeout
    reading = in_thread(lambda: _listed_in_hosts(name), f"etcd_aio hosts {name}")
    await asyncio.wait([reading], timeout=timeout)
    if not reading.done():
        raise DiscoveryError(f"{name}: {hosts_file()} was not read in time")
    listed = reading.result()
    if listed:
        v4, v6 = (tuple(one for one in listed if (":" in one) == is_v6) for is_v6 in (False, True))
        return AddressAnswer(FamilyAnswer(v4, HOSTS_TTL), FamilyAnswer(v6, HOSTS_TTL))
    import dns.asyncresolver
    import dns.exception

    try:
        # A new resolver for each lookup: the name servers of a machine change while a process lives.
        resolver = dns.asyncresolver.default_resolver or dns.asyncresolver.Resolver()
    except (dns.exception.DNSException, OSError) as error:
        raise DiscoveryError(f"{name}: {type(error).__name__}: {sanitize(str(error))}") from error
    domains = resolver.search or ([] if resolver.domain is None else [resolver.domain])
    ndots = _DEFAULT_NDOTS if resolver.ndots is None else resolver.ndots
    missing: AddressAnswer | None = None  # the first one: the name may have addresses all the same
    for candidate in search_names(name, [domain.to_text() for domain in domains], ndots):
        answer = await _ask_both(resolver, candidate, deadline - clock())
        if answer.addresses:
            return answer
        if answer.is_missing and missing is None:
            missing = answer
        if clock() >= deadline:
            break
    return missing or AddressAnswer()


async def _ask_both(resolver: "dns.asyncresolver.Resolver", name: str, timeout: float) -> AddressAnswer:
    """Ask for both families at once. If one has addresses, or no such name, the other is not waited for much longer."""
    tasks = [
        start_background_task(_ask(resolver, name, kind, timeout), name=f"etcd_aio dns {kind} {name}")
        for kind in ("A", "AAAA")
    ]
    try:
        done, waiting = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        if waiting:
            is_enough = any(task.result().addresses or not task.result().exists for task in done)
            await asyncio.wait(waiting, timeout=_SECOND_FAMILY if is_enough else None)
    finally:
        for task in tasks:
            task.cancel()
    v4, v6 = (task.result() if task.done() else FamilyAnswer(error="the answer is late") for task in tasks)
    return AddressAnswer(v4, v6)


async def _ask(resolver: "dns.asyncresolver.Resolver", name: str, kind: str, timeout: float) -> FamilyAnswer:
    import dns.exception
    import dns.resolver

    try:
        answer = await resolver.resolve(name, kind, lifetime=max(timeout, 0.001))
    except dns.resolver.NXDOMAIN:
        return FamilyAnswer(exists=False)
    except dns.resolver.NoAnswer:
        return FamilyAnswer()
    except (dns.exception.DNSException, OSError) as error:
        return FamilyAnswer(error=f"{type(error).__name__}: {sanitize(str(error))}")
    # The shortest TTL also of the aliases that lead to the addresses.
    return FamilyAnswer(tuple(record.to_text() for record in answer), float(answer.chaining_result.minimum_ttl))


def hosts_file() -> Path:
    """The hosts file of this machine."""
    if sys.platform == "win32":
        return Path(r"C:\Windows\System32\drivers\etc\hosts")
    return Path("/etc/hosts")


def _listed_in_hosts(name: str) -> tuple[str, ...]:
    with suppress(OSError), hosts_file().open(encoding="utf-8", errors="replace") as lines:
        return listed_addresses(lines, name)
    return ()
