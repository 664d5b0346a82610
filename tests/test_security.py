"""Security lists 5.1 and 5.2, the lines that hold for the whole library: nothing else skips verification, nothing shows
a secret, nothing that a server says goes into errors and logs as it is."""

import ast
import asyncio
import contextlib
import copy
import dataclasses
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import trustme

from etcd_aio import TLS, Client, Key, op, pb
from etcd_aio.balancer import parse_endpoint
from etcd_aio.errors import EtcdError
from etcd_aio.errors.attempt import MAX_MESSAGE_BYTES
from etcd_aio.transport.response import judge_trailers
from tests.support.canary import CANARY, secret
from tests.support.certificates import write_ca, write_leaf

PACKAGE = Path(__file__).parent.parent / "etcd_aio"

# Where verification may be turned off: by the option that says so, and by the test kit for its questions to its own.
MAY_SKIP_VERIFICATION = {
    "cli/connection.py",  # etcdctl's --insecure-skip-tls-verify
    "config/certificates.py",
    "testing/options.py",
}


SKIPPING = {"CERT_NONE", "CERT_OPTIONAL", "check_hostname", "verify_mode", "_create_unverified_context"}


def skips(code: str) -> bool:
    """Whether code names what turns verification off. Texts and comments do not count."""
    if not any(name in code for name in SKIPPING):
        return False  # parsing all takes seconds
    for node in ast.walk(ast.parse(code)):
        names = {getattr(node, "attr", ""), getattr(node, "id", ""), getattr(node, "arg", "")}
        if names & SKIPPING:
            return True
    return False


def test_nothing_else_turns_verification_off() -> None:
    found = {path.relative_to(PACKAGE).as_posix() for path in PACKAGE.rglob("*.py") if skips(path.read_text())}
    assert found == MAY_SKIP_VERIFICATION


@pytest.mark.parametrize(
    "code",
    [
        "context.check_hostname = False",
        "context.verify_mode = ssl.CERT_NONE",
        "from ssl import CERT_NONE as x; y = CERT_NONE",
        "ssl._create_unverified_context()",
        "f(check_hostname=False)",
    ],
)
def test_every_spelling_of_it_is_found(code: str) -> None:
    assert skips(code)


# --- what a server says ---


@pytest.mark.parametrize(
    "message",
    ["a%0Ab", "a%0D%0A2026 ERROR forged", "%1B[2Jgone", "a\x1b[2J", "%E2%80%AE evil", "%00", "%C2%85", "a\u2028b"],
)
def test_control_characters_of_a_grpc_message_are_escaped(message: str) -> None:
    failure = judge_trailers({"grpc-status": "14", "grpc-message": message})
    assert failure is not None
    assert failure.message.isprintable()
    assert str(failure).isprintable()


def test_a_grpc_message_is_capped() -> None:
    failure = judge_trailers({"grpc-status": "14", "grpc-message": "x" * 10 * MAX_MESSAGE_BYTES})
    assert failure is not None
    assert len(failure.message.encode()) <= MAX_MESSAGE_BYTES
    assert failure.message.endswith("(cut)")


# --- what shows a secret ---


def shown(value: Any) -> str:
    """What a value shows of itself, and of every part that copies of it have."""
    parts = [repr(value), str(value)]
    ways: list[Callable[[Any], object]] = [dataclasses.asdict, pickle.dumps, copy.deepcopy]
    for way in ways:
        with contextlib.suppress(TypeError, pickle.PicklingError, AttributeError):  # refused, so nothing is shown
            parts.append(repr(way(value)))
    return "\n".join(parts)


@pytest.fixture
def tls(tmp_path: Path) -> TLS:
    authority = trustme.CA()
    password = secret("key password")
    own = write_leaf(authority.issue_cert("client"), tmp_path, "client", password=password)
    return TLS(ca=write_ca(authority, tmp_path / "ca.pem"), key_password=password, **own)


def test_a_client_and_its_configuration_show_no_secret(tls: TLS) -> None:
    client = Client("https://127.0.0.1:1", tls=tls)
    for value in (tls, client, client._security, client._security.tls_for(parse_endpoint(client.endpoints[0]))):
        assert CANARY not in shown(value), type(value)


def test_a_client_in_use_shows_no_secret(tls: TLS) -> None:
    async def use() -> None:
        async with Client("https://127.0.0.1:1", tls=tls, timeout=0.1) as client:
            with pytest.raises(EtcdError):
                await client.put("key", secret("value"))
            for value in (client, client.statistics(), client._balancer._pool.current, asyncio.all_tasks()):
                assert CANARY not in repr(value), type(value)

    asyncio.run(use())


@pytest.mark.parametrize(
    "make",
    [
        lambda: op.put("k", secret("value")),
        lambda: op.txn(when=[Key("k").value == secret("value")], then=[op.put("k", secret("value"))]),
        lambda: pb.PutRequest(key=b"k", value=secret("value").encode()),
        lambda: pb.AuthenticateRequest(name="root", password=secret("password")),
        lambda: pb.AuthenticateResponse(token=secret("token")),
        lambda: pb.AuthUserAddRequest(name="root", password=secret("password"), hashed_password=secret("hash")),
        lambda: pb.AuthUserChangePasswordRequest(name="root", password=secret("password")),
    ],
)
def test_a_request_shows_no_value_and_no_password(make: Callable[[], object]) -> None:
    assert CANARY not in f"{make()!r}{make()}"
