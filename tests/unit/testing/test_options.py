"""testing/options.py: the command line and the environment of a server."""

from pathlib import Path

import pytest

from etcd_aio.testing import EtcdBinary, ServerSettings, ServerTLS
from etcd_aio.testing.options import Addresses, Membership, command_line, environment

ADDRESSES = Addresses("http://127.0.0.1:1", "http://127.0.0.1:2", Path("/data"))


def arguments(settings: ServerSettings, version: str = "3.6.16", membership: Membership | None = None) -> list[str]:
    binary = EtcdBinary(Path("/bin/etcd"), version, "given")
    return command_line("m0", binary, settings, ADDRESSES, membership or Membership({"m0": "http://127.0.0.1:2"}))


def test_by_default_etcds_own_times_and_no_fsync() -> None:
    command = arguments(ServerSettings())
    assert command[0] == "/bin/etcd"
    assert "--unsafe-no-fsync" in command
    assert not any("heartbeat" in flag or "election" in flag or "cert" in flag for flag in command)


def test_fsync_can_be_had_and_is_all_that_old_servers_know() -> None:
    assert "--unsafe-no-fsync" not in arguments(ServerSettings(fsync=True))
    assert "--unsafe-no-fsync" not in arguments(ServerSettings(), "3.4.30")
    assert "--unsafe-no-fsync" in arguments(ServerSettings(), "3.5.0")


def test_times() -> None:
    command = arguments(ServerSettings(heartbeat_ms=10, election_ms=100))
    assert {"--heartbeat-interval=10", "--election-timeout=100"} <= set(command)


def test_a_member_advertises_what_its_cluster_knows_it_by() -> None:
    urls = {"m0": "http://127.0.0.1:12", "m1": "http://127.0.0.1:13"}
    command = arguments(ServerSettings(), membership=Membership(urls))
    assert "--listen-peer-urls=http://127.0.0.1:2" in command
    assert "--initial-advertise-peer-urls=http://127.0.0.1:12" in command
    assert "--initial-cluster=m0=http://127.0.0.1:12,m1=http://127.0.0.1:13" in command
    assert "--initial-cluster-state=new" in command
    assert "--initial-cluster-state=existing" in arguments(
        ServerSettings(), membership=Membership(urls, is_joining=True)
    )


@pytest.mark.parametrize("client_ca", [None, Path("/ca.pem")])
def test_tls(client_ca: Path | None) -> None:
    command = arguments(ServerSettings(tls=ServerTLS(Path("/c.pem"), Path("/k.pem"), client_ca)))
    assert {"--cert-file=/c.pem", "--key-file=/k.pem"} <= set(command)
    assert ("--client-cert-auth" in command) is ("--trusted-ca-file=/ca.pem" in command) is (client_ca is not None)


def test_own_flags_come_last() -> None:
    assert arguments(ServerSettings(flags=["--name=other"]))[-1] == "--name=other"


def test_variables_that_etcd_would_read_as_flags_stay_here() -> None:
    ours = {"HOME": "/root", "ETCD_NAME": "x", "ETCD_UNSUPPORTED_ARCH": "arm64", "ETCD_AIO_TEST_ETCD": "/e"}
    assert environment(ServerSettings(), ours) == {"HOME": "/root", "ETCD_UNSUPPORTED_ARCH": "arm64"}
    assert environment(ServerSettings(env={"ETCD_NAME": "y", "HOME": "/h"}), ours)["ETCD_NAME"] == "y"
    assert environment(ServerSettings(env={"HOME": "/h"}), ours)["HOME"] == "/h"
