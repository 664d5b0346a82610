"""The addresses of a DNS name: which names are asked for, what is in a hosts file, and what an answer changes. Pure.

DNS is asked for each family of addresses, IPv4 and IPv6, so that one answer may be missing. A missing answer changes
nothing: the addresses of that family stay.
"""

from collections.abc import Iterable, Iterator, Sequence
from ipaddress import ip_address
from math import inf

from etcd_aio.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class FamilyAnswer:
    """The answer of DNS for one family of addresses.

    Attributes:
        addresses: empty if there are none, or if there is no answer.
        ttl: seconds for which the answer is valid.
        error: why there is no answer; empty if there is one.
        exists: False if the answer is that the name does not exist, which is not about this family alone.
    """

    addresses: tuple[str, ...] = ()
    ttl: float = inf
    error: str = ""
    exists: bool = True


@dataclass(frozen=True, slots=True)
class AddressAnswer:
    """The answers of DNS for both families.

    Attributes:
        v4: IPv4 addresses.
        v6: IPv6 addresses.
    """

    v4: FamilyAnswer = FamilyAnswer()
    v6: FamilyAnswer = FamilyAnswer()

    @property
    def addresses(self) -> tuple[str, ...]:
        """The addresses of both."""
        return (*self.v4.addresses, *self.v6.addresses)

    @property
    def error(self) -> str:
        """Why an answer is missing; empty if none is."""
        return self.v4.error or self.v6.error

    @property
    def is_missing(self) -> bool:
        """Whether the name has no known address, and may have some, since an answer is missing."""
        return not self.addresses and bool(self.error) and self.v4.exists and self.v6.exists

    @property
    def ttl(self) -> float:
        """Seconds until one of the answers with addresses is no longer valid."""
        return min(family.ttl for family in (self.v4, self.v6) if family.addresses)


def kept_addresses(known: AddressAnswer, answer: AddressAnswer) -> AddressAnswer:
    """The addresses after an answer: those that are known stay for a family that was not answered."""
    return AddressAnswer(known.v4 if answer.v4.error else answer.v4, known.v6 if answer.v6.error else answer.v6)


def can_be_dialled(address: str) -> bool:
    """Whether a server may have this address. Blocklists answer with `0.0.0.0`, which is this machine."""
    return not ip_address(address).is_unspecified


def search_names(name: str, domains: Sequence[str], ndots: int) -> tuple[str, ...]:
    """The names to ask for, in order, with a final dot, as resolv.conf says.

    Args:
        name: the name that is looked for; with a final dot it is complete.
        domains: the search domains.
        ndots: a name with fewer dots is completed by the domains first.
    """
    if name.endswith("."):
        return (name,)
    completed = [f"{name}.{domain.strip('.')}." for domain in domains if domain.strip(".")]
    names = (f"{name}.", *completed) if name.count(".") >= ndots else (*completed, f"{name}.")
    return tuple(dict.fromkeys(names))


def listed_addresses(lines: Iterable[str], name: str) -> tuple[str, ...]:
    """The addresses that a hosts file has for a name."""
    return tuple(dict.fromkeys(_listed(lines, name.removesuffix("."))))


def _listed(lines: Iterable[str], name: str) -> Iterator[str]:
    for line in lines:
        address, *names = line.partition("#")[0].split() or ("",)
        if name in (one.lower().removesuffix(".") for one in names):
            try:
                found = str(ip_address(address))
            except ValueError:  # the line is wrong, and the others may be right
                continue
            if "%" not in found:  # an address of one interface of this machine, as macOS has for localhost
                yield found
