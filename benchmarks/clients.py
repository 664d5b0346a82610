"""The clients: one row for each, with the environment of its driver and what it cannot do; and what is measured."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from benchmarks.environments import ROOT, GoProgram, Here, Home, Virtualenv
from benchmarks.workload import CASES, ELECTION_CASES, LOCK_CASES, Case


@dataclass(frozen=True, slots=True)
class Contestant:
    """One row of the comparison.

    Attributes:
        name: its name in the tables and for `--clients`.
        home: the environment of its driver.
        arguments: arguments of the driver, after the endpoints and the prefix.
        environ: variables of the driver's process.
        notes: operation to how this client deviates from it.
        first_endpoint_only: whether the client accepts one endpoint only.
        root: the checkout whose code a Python driver runs.
    """

    name: str
    home: Home
    arguments: tuple[str, ...] = ()
    environ: Mapping[str, str] = field(default_factory=dict)
    notes: Mapping[str, str] = field(default_factory=dict)
    first_endpoint_only: bool = False
    root: Path = ROOT


_ETCD_AIO: Final = Here("benchmarks.drivers.etcd_aio")
_GO: Final = GoProgram("benchmarks/go")
_NO_SERIALIZABLE: Final = "linearizable: it cannot ask for a serializable read"

CONTESTANTS: Final = (
    Contestant("etcd_aio", _ETCD_AIO, ("--engine", "native")),
    Contestant("etcd_aio-pure", _ETCD_AIO, ("--engine", "native"), environ={"ETCD_AIO_PURE_PYTHON": "1"}),
    Contestant("etcd_aio-uvloop", _ETCD_AIO, ("--engine", "native", "--uvloop")),
    Contestant("etcd_aio.sync", Here("benchmarks.drivers.blocking")),
    Contestant("etcd_aio-grpclib", _ETCD_AIO, ("--engine", "grpclib")),
    Contestant(
        "grpc.aio-stub",
        # Not pinned: the newest grpcio is the upper limit for all clients on grpcio.
        Virtualenv("grpc_stub", ("grpcio", "grpcio-tools"), "benchmarks.drivers.grpc_stub", with_stubs=True),
        first_endpoint_only=True,
    ),
    Contestant(
        "aetcd",
        Virtualenv("aetcd", ("aetcd==1.0.0",), "benchmarks.drivers.aetcd"),
        notes={"range": _NO_SERIALIZABLE},
        first_endpoint_only=True,
    ),
    Contestant(
        "etcetra",
        Virtualenv("etcetra", ("etcetra==0.1.19",), "benchmarks.drivers.etcetra"),
        first_endpoint_only=True,
    ),
    Contestant(
        "etcd-client-py",
        Virtualenv("etcd_client_py", ("etcd-client-py==0.5.1",), "benchmarks.drivers.etcd_client_py"),
        notes={"get": _NO_SERIALIZABLE, "range": _NO_SERIALIZABLE},
    ),
    Contestant("go", _GO),
    # If the server shares few cores, Go's default of one thread per core is not the fastest.
    Contestant("go-1-thread", _GO, environ={"GOMAXPROCS": "1"}),
)


_TURNS: Final = Here("benchmarks.drivers.turns")

TURN_CONTESTANTS: Final = (
    Contestant("etcd_aio", _TURNS),
    Contestant("etcd_aio-uvloop", _TURNS, ("--uvloop",)),
    Contestant("go", _GO),
    Contestant("go-1-thread", _GO, environ={"GOMAXPROCS": "1"}),
)


@dataclass(frozen=True, slots=True)
class Suite:
    """Cases that are measured in one run.

    Attributes:
        title: of the picture.
        contestants: the rows.
        references: the rows that the ratios are taken to; the first one's are drawn.
        is_filled: whether the cases read keys that must be stored before.
    """

    title: str
    contestants: tuple[Contestant, ...]
    cases: tuple[Case, ...]
    references: tuple[str, ...]
    is_filled: bool = False


SUITES: Final[Mapping[str, Suite]] = {
    "calls": Suite("etcd clients side by side", CONTESTANTS, CASES, ("go", "grpc.aio-stub"), is_filled=True),
    "locks": Suite("Locks beside the official Go client", TURN_CONTESTANTS, LOCK_CASES, ("go",)),
    "elections": Suite("Elections beside the official Go client", TURN_CONTESTANTS, ELECTION_CASES, ("go",)),
}


def of_checkout(suite: Suite, root: Path) -> list[Contestant]:
    """The rows of etcd_aio with the code of another checkout, to measure a change in one run."""
    own = [one for one in suite.contestants if one.root is ROOT and isinstance(one.home, Here)]
    return [replace(one, name=f"{one.name}@{root.name}", root=root) for one in own]
