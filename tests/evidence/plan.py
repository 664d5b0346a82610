"""The plan of a report, drawn from a seed: the servers, the client and its options, the layers and the faults. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Final

from etcd_aio.balancer import POLICIES

ENGINES: Final = ("native", "grpclib", "gateway")
LOOPS: Final = ("asyncio", "uvloop")
FAULTS: Final = ("kill", "freeze", "isolate", "lag", "move-leader", "replace", "cut", "slow", "silence")
WAYS: Final = ("plain", "namespace", "ordered", "exactly once", "cache", "plain") * 2

_TURNS: Final = ("native", "grpclib", "native", "gateway")


@dataclass(frozen=True, slots=True)
class Size:
    """How much a report has.

    Attributes:
        operations: it ends when there are so many,
        seconds: or after so long, whichever comes first.
        rate: calls a second of each worker; 0 for as many as are answered.
        rest: seconds between two faults, at most.
    """

    operations: int
    seconds: float
    rate: float = 0.0
    rest: float = 2.0


@dataclass(frozen=True, slots=True)
class Plan:
    """The plan of a report.

    Attributes:
        release: of etcd.
        seed: everything else follows from it.
        engine: of the clients.
        loop: that they run on.
        has_auth: whether they log in, with tokens that end after two seconds.
        has_tls: whether their connections are encrypted.
        hedge_after: of the clients.
        ways: the layer that each worker uses.
        policies: of each worker's client.
        watchers: how many follow the keys.
        faults: what happens to the members and connections.
        size: how much it has.
    """

    release: str
    seed: int
    engine: str
    loop: str
    has_auth: bool
    has_tls: bool
    hedge_after: float | None
    ways: tuple[str, ...]
    policies: tuple[str, ...]
    watchers: int
    faults: tuple[str, ...]
    size: Size

    @property
    def name(self) -> str:
        """Of the report."""
        return f"{self.release}-{self.seed}"


def draw(release: str, seed: int, size: Size, *, has_uvloop: bool = True) -> Plan:
    """Draw the plan of a report.

    Engines and event loops take turns, and so do authentication and TLS: few neighbours have all of them.
    """
    random = Random(f"{release}/{seed}")
    has_auth, has_tls = seed % 5 == 2, seed % 3 == 1
    # The kit that replaces a member has no user to do it.
    possible = [fault for fault in FAULTS if not (has_auth and fault == "replace")]
    loops = LOOPS if has_uvloop else LOOPS[:1]
    return Plan(
        release=release,
        seed=seed,
        engine=_TURNS[seed % len(_TURNS)],
        loop=loops[seed // len(_TURNS) % len(loops)],
        has_auth=has_auth,
        has_tls=has_tls,
        hedge_after=random.choice((None, None, 0.05)),
        ways=tuple(random.sample(WAYS, len(WAYS))),
        policies=tuple(random.choice(tuple(POLICIES)) for _ in WAYS),
        watchers=random.randint(3, 5),
        faults=tuple(sorted(random.sample(possible, random.randint(4, len(possible))))),
        size=size,
    )


def numbers(text: str) -> Sequence[int]:
    """The seeds of "7" or "1:100"."""
    first, _, last = text.partition(":")
    return range(int(first), int(last or first) + 1)
