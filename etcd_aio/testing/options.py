"""The options of a server with their defaults, and the command line that they become."""

import ssl
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict

from etcd_aio.testing.binaries import EtcdBinary

_ARCHITECTURE = "ETCD_UNSUPPORTED_ARCH"  # no flag: older servers refuse to run on ARM without it


@dataclass(frozen=True, slots=True)
class ServerTLS:
    """TLS between clients and the server. Peers keep talking in the clear.

    Attributes:
        certificate: PEM file of the server's certificate. The health checks of the kit and etcd's JSON gateway also
            use it as a client certificate, so with `client_ca` it must be valid for both purposes.
        key: PEM file of its private key.
        client_ca: PEM file of the authority that signs accepted clients; None accepts all clients.
    """

    certificate: Path
    key: Path
    client_ca: Path | None = None

    def probe_context(self) -> ssl.SSLContext:
        """The context of the kit's own health checks: it shows the certificate and verifies nothing."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        context.load_cert_chain(self.certificate, self.key)
        return context


class ServerOptions(TypedDict, total=False):
    """The options of `EtcdServer` and of every member of an `EtcdCluster`; `ServerSettings` has the meanings."""

    binary: EtcdBinary | str | Path | None
    version: str | None
    host: str
    flags: Sequence[str]
    env: Mapping[str, str]
    heartbeat_ms: int | None
    election_ms: int | None
    fsync: bool
    tls: ServerTLS | None
    directory: Path | None
    start_timeout: float


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """The options of a server, with their defaults.

    Attributes:
        binary: the server to run: a found one or a path. None takes what `find_etcd(version)` finds.
        version: which versions will do when `binary` is None, in the notation of `find_etcd`.
        host: the address to listen on, for clients and peers.
        flags: further flags, such as "--max-txn-ops=10". They come last, so they override the kit's own.
        env: variables in addition to those of this process. `ETCD_*` variables of this process are not passed on: etcd
            would read them as flags.
        heartbeat_ms: raft's heartbeat in milliseconds. None is etcd's default (100).
        election_ms: raft's election timeout in milliseconds, at least five heartbeats. None is etcd's default (1000).
            It also sets the shortest lease that etcd grants: one and a half times this.
        fsync: False runs with `--unsafe-no-fsync`: several times faster to start and write, and what was written still
            survives a killed server (though not a crashed machine). From etcd 3.5 on; older servers always sync.
        tls: TLS for clients; None is plain text.
        directory: where to put data and log, kept at the end. None is a temporary directory, removed at the end.
        start_timeout: seconds a server may take until it is ready; 20 is far above the second it takes on an idle
            machine.
    """

    binary: EtcdBinary | str | Path | None = None
    version: str | None = None
    host: str = "127.0.0.1"
    flags: Sequence[str] = ()
    env: Mapping[str, str] | None = None
    heartbeat_ms: int | None = None
    election_ms: int | None = None
    fsync: bool = False
    tls: ServerTLS | None = None
    directory: Path | None = None
    start_timeout: float = 20.0


@dataclass(frozen=True, slots=True)
class Membership:
    """The cluster that a server starts in.

    Attributes:
        peer_urls: every member's advertised peer URL by its name, its own included.
        is_joining: the cluster exists already and has added this member.
    """

    peer_urls: Mapping[str, str]
    is_joining: bool = False


@dataclass(frozen=True, slots=True)
class Addresses:
    """The addresses and the data directory of one server.

    Attributes:
        client_url: for clients.
        peer_url: for peers; what it *advertises* to them is in its `Membership`.
        data_dir: etcd's data directory.
    """

    client_url: str
    peer_url: str
    data_dir: Path


def command_line(
    name: str, binary: EtcdBinary, settings: ServerSettings, addresses: Addresses, membership: Membership
) -> list[str]:
    """The command that runs the server."""
    peers = ",".join(f"{member}={url}" for member, url in membership.peer_urls.items())
    command = [
        str(binary.path),
        f"--name={name}",
        f"--data-dir={addresses.data_dir}",
        f"--listen-client-urls={addresses.client_url}",
        f"--advertise-client-urls={addresses.client_url}",
        f"--listen-peer-urls={addresses.peer_url}",
        f"--initial-advertise-peer-urls={membership.peer_urls[name]}",
        f"--initial-cluster={peers}",
        f"--initial-cluster-state={'existing' if membership.is_joining else 'new'}",
        "--logger=zap",
        "--log-outputs=stderr",
    ]
    if settings.heartbeat_ms is not None:
        command.append(f"--heartbeat-interval={settings.heartbeat_ms}")
    if settings.election_ms is not None:
        command.append(f"--election-timeout={settings.election_ms}")
    if not settings.fsync and binary.version_info >= (3, 5, 0):
        command.append("--unsafe-no-fsync")
    if settings.tls is not None:
        command += [f"--cert-file={settings.tls.certificate}", f"--key-file={settings.tls.key}"]
        if settings.tls.client_ca is not None:
            command += ["--client-cert-auth", f"--trusted-ca-file={settings.tls.client_ca}"]
    return [*command, *settings.flags]


def environment(settings: ServerSettings, inherited: Mapping[str, str]) -> dict[str, str]:
    """The server's environment, made from that of this process."""
    kept = {name: value for name, value in inherited.items() if not name.startswith("ETCD_") or name == _ARCHITECTURE}
    return {**kept, **(settings.env or {})}
