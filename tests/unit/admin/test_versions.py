"""admin/versions.py, admin/status.py: requests to all endpoints, and results for answers, errors and silence."""

import asyncio

import pytest

from etcd_aio import pb
from etcd_aio.admin.versions import VersionDocument, Versions, read_document
from etcd_aio.errors import (
    ClientClosedError,
    ConnectError,
    EtcdTimeoutError,
    NoAvailableEndpointsError,
    OldClusterError,
    StatusCode,
    UserEmptyError,
)
from etcd_aio.methods import STATUS
from tests.support.answers import always, asked, header, refused
from tests.support.calls import Calls
from tests.support.fake_engine import Hang
from tests.support.virtual_time import tasks

pytestmark = [pytest.mark.anyio, pytest.mark.virtual_time]


class Members:
    """Three members, and documents that they serve beside gRPC."""

    def __init__(self, calls: Calls, *versions: str) -> None:
        self.calls = calls
        self.documents: dict[str, bytes | Exception | None] = {}
        for name, version in zip(calls.names, versions, strict=True):
            calls.engine[name].otherwise = always(pb.StatusResponse(header=header(), version=version))
            self.documents[name] = b'{"etcdserver":"%s","etcdcluster":"3.5.0"}' % version.encode()
        self.versions = Versions(calls.invoker, self.get)

    async def get(self, endpoint: str, path: str) -> bytes:
        assert path == "/version"
        found = self.documents[endpoint]
        if found is None:
            await asyncio.Event().wait()
        if isinstance(found, Exception):
            raise found
        assert found is not None
        return found


async def new(*versions: str) -> Members:
    return Members(await Calls().ready(), *versions)


async def test_every_endpoint_is_asked_for_both_versions() -> None:
    members = await new("3.5.1", "3.6.16", "3.7.0-rc.1")
    found = await members.versions.ask(5.0)
    assert [one.endpoint for one in found] == members.calls.names
    assert [one.server_version for one in found] == [(3, 5, 1), (3, 6, 16), (3, 7, 0)]
    assert {one.cluster_version for one in found} == {(3, 5, 0)}
    assert not any(one.error for one in found)
    assert sorted(asked(members.calls, STATUS)) == ["m1", "m2", "m3"]
    await members.calls.aclose()
    assert not tasks()


@pytest.mark.parametrize("document", [OSError(1, "no"), ConnectError("no"), UnicodeError(), None, b"<html>", b"[]"])
async def test_an_endpoint_without_the_document_has_its_release_only(document: bytes | Exception | None) -> None:
    members = await new("3.5.1", "3.5.1", "3.5.1")
    members.documents["m2:2379"] = document
    started = members.calls.loop.time()
    found = await members.versions.ask(60.0)
    assert [one.cluster for one in found] == ["3.5.0", "", "3.5.0"]
    assert [one.server for one in found] == ["3.5.1"] * 3
    assert members.calls.loop.time() - started <= 2.0, "a silent port does not delay the others for long"
    await members.calls.aclose()


async def test_an_endpoint_that_does_not_answer_has_an_error() -> None:
    members = await new("3.5.1", "3.5.1", "3.5.1")
    members.calls["m3"].otherwise = Hang()
    found = await members.versions.ask(3.0)
    assert [one.server for one in found] == ["3.5.1", "3.5.1", ""]
    assert isinstance(found[2].error, EtcdTimeoutError)
    assert found[2].server_version == (0, 0, 0)
    await members.calls.aclose()
    with pytest.raises(ClientClosedError):
        await members.versions.ask(3.0)
    assert not tasks()


async def test_cancellation_leaves_nothing_behind() -> None:
    members = await new("3.5.1", "3.5.1", "3.5.1")
    members.calls["m3"].otherwise = Hang()
    members.documents["m1:2379"] = None
    task = asyncio.ensure_future(members.versions.ask(None))
    await asyncio.sleep(0.1)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert members.calls.in_flight() == 0
    await members.calls.aclose()
    assert not tasks()


@pytest.mark.parametrize("version", ["3.4.0", "3.4.0-rc.1", "3.10.0", "4.0.0", "unknown"])
async def test_new_and_unreadable_versions_are_not_rejected(version: str) -> None:
    members = await new("3.5.1", version, "3.5.1")
    await members.versions.reject_old(2.0)
    await members.calls.aclose()


@pytest.mark.parametrize("version", ["3.3.27", "2.3.8"])
async def test_an_old_version_is_rejected_even_if_another_member_is_silent(version: str) -> None:
    members = await new("3.5.1", version, "3.5.1")
    members.calls["m3"].otherwise = Hang()
    with pytest.raises(OldClusterError, match=rf"m2:2379 runs etcd {version}; this client supports 3\.4"):
        await members.versions.reject_old(2.0)
    await members.calls.aclose()


async def test_without_any_answer_the_error_names_every_endpoint() -> None:
    members = await new("3.5.1", "3.5.1", "3.5.1")
    for name in ("m1", "m2", "m3"):
        members.calls[name].otherwise = Hang()
    with pytest.raises(NoAvailableEndpointsError) as caught:
        await members.versions.reject_old(2.0)
    assert set(caught.value.errors) == set(members.calls.names)
    await members.calls.aclose()


async def test_the_document_is_read_if_the_status_is_refused() -> None:
    members = await new("3.5.1", "3.5.1", "3.3.1")
    for name in ("m1", "m2", "m3"):
        members.calls[name].otherwise = refused("etcdserver: user name is empty", StatusCode.INVALID_ARGUMENT)
    members.documents["m2:2379"] = OSError(1, "no")
    found = await members.versions.ask(3.0)
    assert [(one.server, one.cluster) for one in found] == [("3.5.1", "3.5.0"), ("", ""), ("3.3.1", "3.5.0")]
    assert [type(one.error) for one in found] == [type(None), UserEmptyError, type(None)]
    with pytest.raises(OldClusterError, match=r"m3:2379 runs etcd 3\.3\.1"):
        await members.versions.reject_old(2.0)
    await members.calls.aclose()


@pytest.mark.parametrize(
    ("raw", "document"),
    [
        (b'{"etcdserver":"3.6.1","etcdcluster":"3.6.0","storage":"3.6.0"}', VersionDocument("3.6.1", "3.6.0")),
        (b'{"etcdserver":"3.6.1","etcdcluster":"not_decided"}', VersionDocument("3.6.1")),
        (b'{"etcdcluster":5}', VersionDocument()),
        (b'{"etcdcluster":"3\\u0007"}', VersionDocument()),
        (b'{"etcdcluster":"%s"}' % (b"3" * 100), VersionDocument()),
        (b"", VersionDocument()),
        (b"\xff", VersionDocument()),
        (b"[" * 100_000, VersionDocument()),
    ],
    ids=lambda value: str(value)[:40],
)
def test_unreadable_parts_of_the_document_are_empty(raw: bytes, document: VersionDocument) -> None:
    assert read_document(raw) == document
