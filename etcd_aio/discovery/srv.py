"""SRV: endpoints from DNS, through dnspython, which is an extra.

Knows: which services are asked and what a missing one means; dnspython. Never knows: when to ask again.

The service with TLS is asked first. The one without is asked only if DNS says that the first does not exist, and the
client has no TLS configuration: that the first question was not answered is no reason to go on in the clear. Targets
are verified as themselves, so DNS decides whom a client trusts; therefore those of a client that trusts the system's
certificate authorities must lie within the domain that it was given.
"""

import random as random_module
from collections.abc import Awaitable, Callable
from typing import TypeAlias

from etcd_aio.discovery.resolver import Resolution
from etcd_aio.discovery.srv_records import SrvAnswer, SrvRecord, resolution_of, service_name
from etcd_aio.errors import ConfigError, DiscoveryError, sanitize

Lookup: TypeAlias = Callable[[str, float], Awaitable[SrvAnswer]]
"""Asks DNS for the SRV records of a name, within some seconds; raises DiscoveryError if it does not know."""


def require_dnspython() -> None:
    """Import what asks for SRV records: now, since it takes a while, and not once a loop is to be kept running.

    Raises:
        ConfigError: dnspython is not installed.
    """
    try:
        import dns.asyncresolver  # noqa: F401 - whether it is there is all that matters
    except ImportError as error:
        raise ConfigError("discovery_srv needs dnspython: pip install 'etcd_aio[srv]'") from error


async def dns_lookup(name: str, timeout: float) -> SrvAnswer:
    """Ask the name servers of this machine, or those of `dns.asyncresolver.default_resolver` if somebody has set it.

    Args:
        name: the service.
        timeout: seconds.

    Raises:
        DiscoveryError: there was no answer, or one that says only that something is wrong.
    """
    import dns.asyncresolver
    import dns.exception
    import dns.rdtypes.IN.SRV
    import dns.resolver

    try:
        # One for each question: the name servers of a machine change while a process lives.
        resolver = dns.asyncresolver.default_resolver or dns.asyncresolver.Resolver()
        answer = await resolver.resolve(f"{name}.", "SRV", lifetime=timeout)
    except (dns.resolver.NXDOMAIN, dns.resolver.NoAnswer):
        return SrvAnswer()
    except (dns.exception.DNSException, OSError) as error:
        raise DiscoveryError(f"{name}: {type(error).__name__}: {sanitize(str(error))}") from error
    records = (one for one in answer if isinstance(one, dns.rdtypes.IN.SRV.SRV))
    return SrvAnswer(
        tuple(
            SrvRecord(one.priority, one.weight, one.port, one.target.to_text(omit_final_dot=True)) for one in records
        ),
        float(answer.rrset.ttl) if answer.rrset is not None else 0.0,
    )


class SrvResolver:
    """See `Resolver`.

    Args:
        domain: where the records are.
        name: of the cluster, if there are several.
        has_tls: whether the client has a TLS configuration.
        has_own_ca: whether that trusts authorities of the user's, who vouch for members in any domain.
        lookup: asks DNS.
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
        self._was_tls = False

    async def resolve(self, timeout: float) -> Resolution:
        """See `Resolver.resolve`. `timeout` holds for each of two questions."""
        answer = await self._lookup(self.name, timeout)
        if answer.records:
            found = resolution_of(answer, self.name, is_tls=True, within=self._within, random=self._random)
            self._was_tls = True
            return found
        if self._has_tls or self._was_tls:
            raise DiscoveryError(f"{self.name} does not exist, and a client that speaks TLS takes no other service")
        answer = await self._lookup(self._plain, timeout)
        if not answer.records:
            raise DiscoveryError(f"neither {self.name} nor {self._plain} exists")
        return resolution_of(answer, self._plain, is_tls=False, within="", random=self._random)
