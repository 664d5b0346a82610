"""TLS(reconnect=True) on real servers: certificates are replaced under load, and no call and no event is lost."""

import asyncio
import time
from pathlib import Path

import pytest

from etcd_aio import Client, sync
from etcd_aio.balancer import renewal_schedule, renewer
from etcd_aio.testing import EtcdServer
from tests.support.rotation import Certificates, load
from tests.support.virtual_time import tasks

pytestmark = [pytest.mark.anyio, pytest.mark.cluster]


@pytest.fixture
def quick_renewal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Read the files often, and follow changes at once."""
    monkeypatch.setattr(renewer, "READ_SECONDS", 0.5)
    monkeypatch.setattr(renewal_schedule, "SPREAD", 0.5)


@pytest.mark.both_engines
@pytest.mark.parametrize("authorities", [1, 3])
@pytest.mark.usefixtures("each_engine", "quick_renewal")
async def test_certificates_are_replaced_under_load(
    tmp_path: Path, authorities: int, caplog: pytest.LogCaptureFixture
) -> None:
    """With several authorities, the bundle of the client changes with each replacement."""
    certificates = Certificates(tmp_path, lifetime=30, authorities=authorities)
    async with (
        EtcdServer(tls=certificates.server) as server,
        Client(server.endpoint, tls=certificates.tls()) as client,
        certificates.replaced_every(1.5),
    ):
        report = await load(client, 6, connects=4)
    report.check()
    assert report.calls > 100
    assert report.connects[0] >= 4, "one for each replacement, and the first"
    told = [one.getMessage() for one in caplog.records if one.name == "etcd_aio.streams"]
    assert not told, "that a stream moves is no news"


@pytest.mark.slow
@pytest.mark.usefixtures("each_engine")
async def test_short_lived_certificates_do_not_expire_within_a_connection(tmp_path: Path) -> None:
    """The files are read as often as always, so the ends alone lead to some of the dials."""
    certificates = Certificates(tmp_path, lifetime=6)
    async with (
        EtcdServer(tls=certificates.server) as server,
        Client(server.endpoint, tls=certificates.tls()) as client,
        certificates.replaced_every(2),
    ):
        report = await load(client, 14, connects=3)
    report.check()
    assert report.connects[0] >= 3


@pytest.mark.nightly
@pytest.mark.parametrize("authorities", [1, 3])
@pytest.mark.usefixtures("each_engine")
async def test_certificates_are_replaced_for_a_minute(tmp_path: Path, authorities: int) -> None:
    certificates = Certificates(tmp_path, lifetime=15, authorities=authorities)
    async with (
        EtcdServer(tls=certificates.server) as server,
        Client(server.endpoint, tls=certificates.tls()) as client,
        certificates.replaced_every(5),
    ):
        report = await load(client, 60, connects=6)
    report.check()
    assert report.connects[0] >= 6


@pytest.mark.usefixtures("quick_renewal")
async def test_connections_of_blocking_code_are_renewed_too(tmp_path: Path) -> None:
    certificates = Certificates(tmp_path)

    def use(endpoint: str) -> int:
        with sync.Client(endpoint, tls=certificates.tls()) as client:
            client.put("k", "0")
            certificates.replace()
            end = time.monotonic() + 30
            while client.statistics()[0].connects == 1 and time.monotonic() < end:
                client.put("k", "1")
            return client.statistics()[0].connects

    async with EtcdServer(tls=certificates.server) as server:
        assert await asyncio.to_thread(use, server.endpoint) == 2


@pytest.mark.usefixtures("each_engine", "quick_renewal")
async def test_without_the_option_open_connections_stay(tmp_path: Path) -> None:
    certificates = Certificates(tmp_path)
    async with (
        EtcdServer(tls=certificates.server) as server,
        Client(server.endpoint, tls=certificates.tls(reconnect=False)) as client,
        Client(server.endpoint, tls=certificates.tls()) as other,
    ):
        for one in (client, other):
            await one.put("k", "v")
        assert client._balancer._renewer is None
        assert [task.get_name() for task in tasks()].count("etcd_aio renew connections") == 1, "that of the other"
        certificates.replace()
        async with asyncio.timeout(30):
            while other.statistics()[0].connects == 1:  # noqa: ASYNC110 - nothing signals it
                await asyncio.sleep(0.05)
        await client.put("k", "v")
        assert client.statistics()[0].connects == 1
