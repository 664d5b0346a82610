"""The fake and virtual time as fixtures."""

import pytest

from etcd_aio.errors import ConfigError
from etcd_aio.fake import FakeEtcd
from pytest_etcd_aio.fakes import release_for
from tests.support.suites import Project

CLOCK = """
import asyncio
import pytest
from etcd_aio.fake.time import VirtualTimeLoop

async def test_before(fake_client):
    assert not isinstance(asyncio.get_running_loop(), VirtualTimeLoop)

async def test_time(etcd_clock, fake_client, fake_etcd):
    assert asyncio.get_running_loop() is etcd_clock
    begin = etcd_clock.time()
    async with fake_client.lease(10) as lease:
        await fake_client.put("kept", "1", lease=lease)
        await fake_client.put("lost", "1", lease=await fake_client.leases.grant(10))
        await asyncio.sleep(3600)
        assert fake_etcd.keys() == {b"kept": b"1"}
    assert etcd_clock.time() - begin >= 3600

@pytest.fixture
def through_a_fixture(etcd_clock):
    return etcd_clock

async def test_indirect(through_a_fixture):
    await asyncio.sleep(3600)

async def test_deadlock(etcd_clock, fake_client):
    await asyncio.Event().wait()

async def test_real(etcd_clock, etcd_client):
    pass

async def test_after(fake_client):
    assert not isinstance(asyncio.get_running_loop(), VirtualTimeLoop)
"""


@pytest.mark.parametrize("runner", ["anyio", "auto"])
def test_virtual_time(project: Project, runner: str) -> None:
    project.write("conftest.py", "import pytest\n@pytest.fixture\ndef anyio_backend(): return 'asyncio'\n")
    text = CLOCK if runner == "auto" else CLOCK.replace("async def test_", "@pytest.mark.anyio\nasync def test_")
    project.write("test_it.py", text)
    done = project.run("--etcd-bin=/bin/false", runner=runner)
    assert done.counts == {"passed": 4, "failed": 1, "error": 1}, done.text
    assert "DeadlockError: deadlock: nothing is ready and no timer is set" in done.text
    assert "etcd_clock is for fake_etcd only" in done.text


def test_virtual_time_leaves_the_loops_of_another_plugin_alone(project: Project) -> None:
    project.write(
        "conftest.py",
        """
        import asyncio

        class Own(asyncio.SelectorEventLoop): pass

        def pytest_asyncio_loop_factories(config, item):
            return {"own": Own}
        """,
    )
    project.write(
        "test_it.py",
        """
        import asyncio

        async def test_clock(etcd_clock, fake_client):
            await asyncio.sleep(3600)

        async def test_other(fake_client):
            assert type(asyncio.get_running_loop()).__name__ == "Own"
        """,
    )
    assert project.run(runner="auto").counts == {"passed": 2}


def test_each_test_has_a_fake_of_its_own_as_the_marker_says(project: Project) -> None:
    project.write(
        "test_it.py",
        """
        import pytest

        async def test_first(fake_client, fake_etcd):
            await fake_client.put("a", "1")

        async def test_second(fake_client, fake_etcd):
            assert fake_etcd.keys() == {}
            await fake_client.compact(1)

        @pytest.mark.etcd(nodes=3, version=">=3.5,<3.7", auth=True)
        async def test_marked(fake_client, fake_etcd):
            assert [version.server for version in await fake_client.versions()] == ["3.6.16"] * 3
            assert (await fake_client.auth.status()).enabled
            await fake_client.put("a", "1")

        def test_sync(fake_etcd):
            fake_etcd.load({"a": "1"})

        async def test_unclosed(fake_etcd):
            global client
            client = await fake_etcd.client().connect()
            await client.put("a", "1")
            await client.aclose()

        @pytest.mark.etcd(version="<3.4")
        async def test_none(fake_etcd): pass
        """,
    )
    done = project.run(runner="auto")
    assert done.counts == {"passed": 5, "error": 1}, done.text
    assert "none of them is '<3.4'" in done.text


@pytest.mark.parametrize(
    ("wanted", "release"),
    [
        ("", "3.7"),
        ("3.5", "3.5"),
        ("3.5.4", "3.5"),
        (">=3.4", "3.7"),
        ("<3.6", "3.5"),
        (">=3.4, <3.7, !=3.6", "3.5"),
        ("<=3.4", "3.4"),
        (">3.6", "3.7"),
        ("3", "3.7"),
    ],
)
def test_the_newest_release_that_fits_is_taken(wanted: str, release: str) -> None:
    assert release_for(wanted) == release


@pytest.mark.parametrize("wanted", ["4", "newest", ">3.7", "<3.4", "<3"])
def test_a_release_that_the_fake_cannot_be_is_refused(wanted: str) -> None:
    with pytest.raises(ValueError, match=r"not a version|none of them"):
        release_for(wanted)


def test_the_releases_are_those_of_the_fake() -> None:
    for release in ("3.4", "3.5", "3.6", "3.7"):
        assert release_for(release) == release
        FakeEtcd(release)
    for release in ("3.3", "3.8"):
        with pytest.raises(ConfigError):
            FakeEtcd(release)
