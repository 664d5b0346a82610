"""Endpoints from DNS SRV records, looked up by dnspython, which is an extra.

The service with TLS is looked up first. The service without TLS is looked up only if DNS says that the first does not
exist, and the client has no TLS configuration: a missing answer is no reason to continue in plain text. Members are
verified by the host names in the records, so DNS decides which hosts a client trusts. Therefore, if the client trusts
the system's certificate authorities, the hosts must lie within the domain that it was given.
"""

import random as random_module
from collections.abc import Awaitable, Callable
from typing import TypeAlias

from etcd_aio.discovery.resolver import Resolution
from etcd_aio.discovery.srv_records import SrvAnswer, SrvRecord, endpoints_of_answer, service_name
from etcd_aio.errors import ConfigError, DiscoveryError, sanitize

Lookup: TypeAlias = Callable[[str, float], Awaitable[SrvAnswer]]
"""Looks up the SRV records of a name, within a timeout in seconds; raises DiscoveryError if there is no answer."""


def require_dnspython(what: str) -> None:
    """Import dnspython now: the import takes too long for a running event loop.

    Args:
        what: what needs it.

    Raises:
        ConfigError: dnspython is not installed.
    """
    try:
        import dns.asyncresolver  # noqa: F401 - only to see whether it is installed
    except ImportError as error:
        raise ConfigError(f"{what} needs dnspython: pip install 'etcd_aio[dns]'") from error


async def dns_lookup(name: str, timeout: float) -> SrvAnswer:
    """Ask the name servers of this machine, or `dns.asyncresolver.default_resolver` if the application has set it.

    Args:
        name: the name of the service.
        timeout: seconds.

    Raises:
        DiscoveryError: there was no answer, or only an error.
    """
    import dns.asyncresolver
    import dns.exception
    import dns.rdtypes.IN.SRV
    import dns.resolver

    try:
        # A new resolver for each lookup: the name servers of a machine change while a process lives.
        resolver = dns.asyncresolver.default_resolver or dns.asyncresolver.Resolver()
        answer = await resolver.resolve(f"{name}.", "SRV", lifetime=timeout)
    except (dns.resolver.NXDOMAIN, dns.resolver.NoAnswer):
        return SrvAnswer()
    except (dns.exception.DNSException, OSError) as error:
        raise DiscoveryError(f"{name}: {type(error).__name__}: {sanitize(str(error))}") from error
    records = (record for record in answer if isinstance(record, dns.rdtypes.IN.SRV.SRV))
    return SrvAnswer(
        tuple(
            SrvRecord(record.priority, record.weight, record.port, record.target.to_text(omit_final_dot=True))
            for record in records
        ),
        float(answer.rrset.ttl) if answer.rrset is not None else 0.0,
    )


class SrvResolver:
    """The resolver for `discovery_srv`. Its timeout is for each of two lookups.

    Args:
        domain: the domain with the records.
        name: the name of the cluster, if the domain has several.
        has_tls: whether the client has a TLS configuration.
        has_own_ca: whether it trusts the user's own authorities, which may certify members in any domain.
        lookup: asks DNS; dnspython by default.
        random: returns a number in [0, 1).
    """

    def __init__(
        self,
        domain: str,
        name: str = "",
        *,
        has_tls: bool,
        has_own_ca: bool,
        lookup: Lookup | None = None,
        random: Callable[[], float] = random_module.random,
    ) -> None:
        self.name = service_name(domain, name, is_tls=True)
        self._plain = service_name(domain, name, is_tls=False)
        self._has_tls = has_tls
        self._within = "" if has_own_ca else domain
        self._lookup = lookup or dns_lookup
        self._random = random
        self.is_tls = False

    async def resolve(self, timeout: float) -> Resolution:
        answer = await self._lookup(self.name, timeout)
        if answer.records:
            resolution = endpoints_of_answer(answer, self.name, is_tls=True, within=self._within, random=self._random)
            self.is_tls = True
            return resolution
        if self._has_tls or self.is_tls:
            raise DiscoveryError(f"{self.name} does not exist, and this client requires TLS")
        answer = await self._lookup(self._plain, timeout)
        if not answer.records:
            raise DiscoveryError(f"neither {self.name} nor {self._plain} exists")
        return endpoints_of_answer(answer, self._plain, is_tls=False, within="", random=self._random)
