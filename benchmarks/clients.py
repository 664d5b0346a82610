"""Who is measured: one row per client, with where its driver runs and what it cannot ask for.

Knows: names, pinned versions, the facts that make a comparison uneven. Never knows: how to install, run or time them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from benchmarks.environments import ROOT, GoProgram, Here, Home, Virtualenv

REFERENCES: Final = ("go", "grpc.aio-stub")
"""The rows that the ratios are taken to."""


@dataclass(frozen=True, slots=True)
class Contestant:
    """One row of the comparison.

    Attributes:
        name: what the tables and `--clients` call it.
        home: where its driver runs.
        arguments: what the driver is told beyond the endpoints and the prefix.
        environ: variables of the driver's process.
        notes: operation to what this client does otherwise than asked.
        first_endpoint_only: True where the client cannot be given a list.
        root: the checkout whose code its driver runs, where the driver is Python.
    """

    name: str
    home: Home
    arguments: tuple[str, ...] = ()
    environ: Mapping[str, str] = field(default_factory=dict)
    notes: Mapping[str, str] = field(default_factory=dict)
    first_endpoint_only: bool = False
    root: Path = ROOT


_ETCD_AIO: Final = Here("benchmarks.drivers.etcd_aio")
_GO: Final = GoProgram("go")
_NO_SERIALIZABLE: Final = "linearizable: it cannot ask for a serializable read"

CONTESTANTS: Final = (
    Contestant("etcd_aio", _ETCD_AIO, ("--engine", "native")),
    Contestant("etcd_aio-uvloop", _ETCD_AIO, ("--engine", "native", "--uvloop")),
    Contestant("etcd_aio-grpclib", _ETCD_AIO, ("--engine", "grpclib")),
    Contestant(
        "grpc.aio-stub",
        # Unpinned: the floor that any client on grpcio stands on is the newest one's.
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
    # On few cores that the server shares, Go's default of one thread per core is not its best.
    Contestant("go-1-thread", _GO, environ={"GOMAXPROCS": "1"}),
)


def of_checkout(root: Path) -> list[Contestant]:
    """The rows of etcd_aio once more, with the code of another checkout: what a change costs, in one run."""
    own = [one for one in CONTESTANTS if one.home is _ETCD_AIO]
    return [replace(one, name=f"{one.name}@{root.name}", root=root) for one in own]
