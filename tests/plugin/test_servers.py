"""Real servers: tests do not see each other's traces, break servers without harm, and leave no process."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from etcd_aio.testing import EtcdServer
from tests.support.suites import Outcome, Project

pytestmark = pytest.mark.cluster

needs_proc = pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc")


def assert_passed(done: Outcome, number: int) -> None:
    assert done.code == 0, done.text
    assert done.counts == {"passed": number}, done.text


def test_each_test_of_broken_servers_that_fails_leaves_healthy_ones(project: Project) -> None:
    project.write(
        "test_it.py",
        """
        import pytest

        def killed(etcd_server): etcd_server.kill()
        def stopped(etcd_server): etcd_server.stop()
        def paused(etcd_server): etcd_server.pause()

        @pytest.mark.asyncio
        @pytest.mark.parametrize("break_", [killed, stopped, paused])
        async def test_break_server(etcd_client, etcd_server, break_):
            await etcd_client.put("key", "1")
            break_(etcd_server)
            assert False, "as expected"

        @pytest.mark.asyncio
        async def test_break_proxy(etcd_client, etcd_proxy):
            await etcd_client.put("key", "1")
            etcd_proxy.black_hole()
            assert False, "as expected"

        def test_break_server_without_a_client(etcd_server):
            etcd_server.kill()
            assert False, "as expected"

        def test_healthy(etcd_server):
            assert etcd_server.is_running and not etcd_server.is_paused

        @pytest.mark.asyncio
        async def test_empty(etcd_client):
            assert await etcd_client.get("key") is None
            await etcd_client.put("key", "1")

        def kill_leader(cluster): cluster.leader().kill()
        def pause_two(cluster): [member.pause() for member in cluster.members[:2]]
        def kill_all(cluster): [member.kill() for member in cluster.members]
        def isolate(cluster): cluster.isolate(cluster.leader())
        def lag(cluster): cluster.lag(cluster.followers()[0], 1.0)

        @pytest.mark.asyncio
        @pytest.mark.parametrize("break_", [kill_leader, pause_two, kill_all, isolate, lag])
        async def test_break_cluster(etcd_client, etcd_cluster, break_):
            assert await etcd_client.get("key") is None
            await etcd_client.put("key", "1")
            break_(etcd_cluster)
            assert False, "as expected"

        @pytest.mark.asyncio
        async def test_healthy_cluster(etcd_client, etcd_cluster):
            assert all(member.is_running and not member.is_paused for member in etcd_cluster.members)
            for endpoint in etcd_client.endpoints:
                await etcd_client.maintenance.status(endpoint)
            await etcd_client.put("key", "1")
        """,
    )
    done = project.run()
    assert done.counts == {"failed": 10, "passed": 3}, done.text
    assert done.text.count("E       AssertionError: as expected") == 10


def test_a_failure_reports_the_log_of_the_server_and_what_the_client_saw(project: Project) -> None:
    project.write(
        "test_it.py",
        """
        import pytest

        @pytest.mark.asyncio
        async def test_it(etcd_client, etcd_server):
            global watcher
            watcher = await etcd_client.watch(prefix="a").__aenter__()
            await etcd_client.put("a", "unmistakable")
            etcd_server.kill()
            assert False
        """,
    )
    done = project.run()
    assert done.counts == {"failed": 1}, done.text
    assert "etcd server m0: http://127.0.0.1:" in done.text
    assert ", ended ---" in done.text
    assert '"caller":"' in done.text, "lines of the log"
    assert "- etcd client etcd_client -" in done.text
    assert "EndpointStatistics(endpoint='http://127.0.0.1:" in done.text
    assert "StreamStatistics(method='Watch/Watch'" in done.text
    assert done.text.count("unmistakable") == 1, "the source line; no value is reported"


def test_data_is_kept_on_request_if_a_test_fails(project: Project) -> None:
    project.write("test_it.py", "def test_it(etcd_server):\n    assert etcd_server.version.startswith('9')\n")
    done = project.run("--etcd-keep")
    assert done.counts == {"failed": 1}, done.text
    folder = Path(done.text.partition("etcd data of m0")[2].splitlines()[1])
    assert folder.is_relative_to(project.temporary)
    assert (folder / "member").is_dir()
    assert project.servers() == []
    (project.folder / "test_it.py").write_text("def test_it(etcd_server): pass")
    before = project.leftovers()
    assert_passed(project.run("--etcd-keep"), 1)
    assert project.leftovers() == before


def test_what_is_open_at_the_end_of_a_test_goes_without_a_warning(project: Project) -> None:
    project.write(
        "test_it.py",
        """
        import asyncio
        import pytest
        from etcd_aio import Client

        kept = []

        @pytest.fixture(scope="module")
        def of_the_module(etcd_endpoints):
            async def grant():
                async with Client(etcd_endpoints) as client:
                    return (await client.leases.grant(60)).id
            return asyncio.run(grant())

        @pytest.mark.asyncio
        async def test_leave_open(of_the_module, etcd_client, etcd_endpoints, etcd_namespace):
            watcher = etcd_client.watch(prefix="a")
            await watcher.__aenter__()
            kept.append(watcher)
            lock = etcd_client.lock("jobs")
            await lock.__aenter__()
            lease = etcd_client.lease(60)
            await lease.__aenter__()
            await etcd_client.leases.grant(60)
            async with Client(etcd_endpoints, namespace=etcd_namespace) as other:
                await other.put("b", "2", lease=await other.leases.grant(60))
            await etcd_client.put("a", "1", lease=lease)

        @pytest.mark.asyncio
        async def test_nothing_is_left(of_the_module, etcd_endpoints):
            async with Client(etcd_endpoints) as client:
                assert not await client.range(all_keys=True)
                assert (await client.leases.list()).ids == (of_the_module,)
        """,
    )
    assert_passed(project.run(), 2)


def test_a_session_fixture_may_build_on_the_server(project: Project) -> None:
    project.write(
        "test_it.py",
        """
        import pytest

        made = []

        @pytest.fixture(scope="session")
        def app(etcd_server):
            made.append(etcd_server.endpoint)
            yield etcd_server.endpoint

        def test_first(app): pass
        @pytest.mark.etcd(version="3.5")
        def test_marked(app, etcd_server):
            assert etcd_server.version.startswith("3.5.")
            assert app == etcd_server.endpoint
        def test_second(app, etcd_server):
            assert app == etcd_server.endpoint
            assert len(set(made)) == 2
        """,
    )
    assert_passed(project.run(), 3)


def test_the_marker_chooses_the_server(project: Project) -> None:
    project.write(
        "test_it.py",
        """
        import pytest
        from etcd_aio import Client
        from etcd_aio.errors import UserEmptyError

        pytestmark = pytest.mark.asyncio

        @pytest.mark.etcd(tls=True, auth=True)
        async def test_tls_and_auth(etcd_client, etcd_server):
            assert etcd_server.endpoint.startswith("https://")
            assert (await etcd_client.auth.status()).enabled
            await etcd_client.put("a", "1")
            async with etcd_server.access.client(Client, auth=None) as stranger:
                with pytest.raises(UserEmptyError):
                    await stranger.put("a", "1")

        @pytest.mark.etcd(version=">=3.5,<3.6", options={"max_txn_ops": 2})
        class TestOld:
            async def test_old(self, etcd_client, etcd_server):
                assert etcd_server.version.startswith("3.5.")
                with pytest.raises(ValueError, match="too many operations"):
                    await etcd_client.txn().then(*[etcd_client_op(n) for n in range(3)]).commit()

            @pytest.mark.etcd(nodes=1)
            async def test_both(self, etcd_client, etcd_cluster):
                assert len(etcd_cluster.members) == 1 == len(etcd_client.endpoints)
                assert etcd_cluster.version.startswith("3.5.")

        def etcd_client_op(n):
            from etcd_aio import op
            return op.put(str(n), "1")

        async def test_default(etcd_client, etcd_server):
            assert not etcd_server.version.startswith("3.5.")
            assert not etcd_server.endpoint.startswith("https://")

        @pytest.mark.etcd(nodes=3)
        async def test_cluster(etcd_client, etcd_endpoints):
            assert etcd_client.endpoints == etcd_endpoints
            assert len(etcd_endpoints) == 3
        """,
    )
    done = project.run("-v")
    assert_passed(done, 5)
    assert "test_it.py::test_tls_and_auth PASSED" in done.text, "the marker changes no id"


def test_a_private_server_takes_calls_about_the_whole_cluster_and_shared_ones_refuse_them(project: Project) -> None:
    project.write(
        "test_it.py",
        """
        import socket
        import pytest

        pytestmark = pytest.mark.asyncio
        seen = []

        @pytest.mark.etcd(private=True)
        async def test_private(etcd_client, etcd_server):
            seen.append(etcd_server.endpoint)
            revision = (await etcd_client.put("a", "1")).revision
            await etcd_client.compact(revision)
            await etcd_client.maintenance.defragment(etcd_server.endpoint)
            etcd_server.restart(wipe=True)

        @pytest.mark.etcd(private=True)
        async def test_another(etcd_client, etcd_server):
            assert etcd_server.endpoint not in seen
            assert (await etcd_client.get("a")) is None

        async def test_shared(etcd_client, etcd_server):
            assert etcd_server.endpoint not in seen
            for endpoint in seen:
                with pytest.raises(ConnectionRefusedError):
                    socket.create_connection(("127.0.0.1", int(endpoint.rpartition(":")[2])))
            await etcd_client.cluster.members()
            with pytest.raises(pytest.UsageError, match=r"etcd\\(private=True\\)"):
                await etcd_client.compact(1)
            with pytest.raises(pytest.UsageError, match=r"client.maintenance.defragment\\(\\).*etcd\\(private=True\\)"):
                await etcd_client.maintenance.defragment(etcd_server.endpoint)
            with pytest.raises(pytest.UsageError, match=r"etcd\\(private=True\\)"):
                await etcd_client.cluster.add("http://127.0.0.1:1")
            with pytest.raises(pytest.UsageError, match=r"etcd\\(private=True\\)"):
                await etcd_client.auth.enable()
            with pytest.raises(pytest.UsageError, match=r"etcd\\(private=True\\)"):
                etcd_server.restart(wipe=True)
        """,
    )
    assert_passed(project.run(), 3)


def test_two_runs_at_the_same_time_do_not_disturb_each_other(project: Project, tmp_path: Path) -> None:
    project.write(
        "test_it.py",
        """
        import pytest
        from etcd_aio import Client

        @pytest.mark.asyncio
        @pytest.mark.parametrize("number", range(6))
        async def test_it(etcd_client, etcd_endpoints, number):
            async with Client(etcd_endpoints) as client:
                assert not await client.range(all_keys=True)
                assert not (await client.leases.list()).ids
            lease = await etcd_client.leases.grant(60)
            await etcd_client.put("key", str(number), lease=lease)
            assert (await etcd_client.get("key")).text() == str(number)
        """,
    )
    command = project.command("-p", "xdist", "-n", "4")
    started = [
        subprocess.Popen(command, cwd=project.folder, env=project.environment({}), stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    for each in started:
        text, _ = each.communicate(timeout=240)
        assert_passed(Outcome(each.returncode, text), 6)


END_EARLY = """
import os
import pytest

def test_start(etcd_server, etcd_cluster):
    print("started", flush=True)

@pytest.mark.asyncio
async def test_end(etcd_client, etcd_server, etcd_cluster):
    await etcd_client.put("a", "1")
    {end}
"""


@needs_proc
@pytest.mark.parametrize(
    ("end", "arguments", "code"),
    [
        pytest.param("assert False", (), 1, id="failure"),
        pytest.param("assert False", ("-x",), 1, id="first failure", marks=pytest.mark.nightly),
        pytest.param("pytest.exit('enough')", (), 2, id="exit", marks=pytest.mark.nightly),
        pytest.param("raise KeyboardInterrupt", (), 2, id="interrupt"),
        pytest.param("os._exit(7)", (), 7, id="_exit", marks=pytest.mark.nightly),
    ],
)
def test_no_process_is_left(project: Project, end: str, arguments: tuple[str, ...], code: int) -> None:
    project.write("test_it.py", END_EARLY.format(end=end))
    done = project.run(*arguments)
    assert done.code == code, done.text
    until = time.monotonic() + 30
    while project.servers() and time.monotonic() < until:  # after `_exit` the kernel ends them, soon
        time.sleep(0.02)
    assert project.servers() == []
    if code != 7:
        assert project.leftovers() == []


@needs_proc
def test_control_c_while_a_test_waits_leaves_no_process(project: Project) -> None:
    tells = "print('waiting', flush=True)"
    project.write("test_it.py", END_EARLY.format(end=f"import asyncio; {tells}; await asyncio.sleep(300)"))
    with subprocess.Popen(
        project.command("-s"), cwd=project.folder, env=project.environment({}), stdout=subprocess.PIPE, text=True
    ) as run:
        assert run.stdout is not None
        assert any("waiting" in line for line in run.stdout)
        os.kill(run.pid, signal.SIGINT)
        run.stdout.read()
        assert run.wait(60) == 2
    assert project.servers() == []
    assert project.leftovers() == []


def test_a_given_server_is_used_and_not_touched_outside_of_namespaces(project: Project) -> None:
    project.write(
        "test_it.py",
        """
        import pytest
        from etcd_aio import Client

        pytestmark = pytest.mark.asyncio

        async def test_first(etcd_client, etcd_endpoints, etcd_server):
            async with Client(etcd_endpoints) as client:
                await client.put("outside", "1", lease=await client.leases.grant(60))
            lease = await etcd_client.leases.grant(60)
            await etcd_client.put("key", "1", lease=lease)
            with pytest.raises(pytest.UsageError):
                etcd_server.kill()

        async def test_second(etcd_client, etcd_endpoints):
            async with Client(etcd_endpoints) as client:
                assert [kv.key for kv in await client.range(all_keys=True)] == [b"outside"]
                assert len((await client.leases.list()).ids) == 1

        @pytest.mark.etcd(tls=True)
        async def test_more(etcd_client): pass
        async def test_cluster(etcd_cluster): pass
        @pytest.mark.etcd(private=True)
        async def test_private(etcd_client): pass
        """,
    )
    from anyio.from_thread import start_blocking_portal

    with start_blocking_portal() as portal, portal.wrap_async_context_manager(EtcdServer()) as server:
        done = project.run("--etcd-endpoints", server.endpoint, "-rs")
        assert done.counts == {"passed": 2, "skipped": 3}, done.text
        assert "--etcd-endpoints names another" in done.text
        assert f"etcd: {server.endpoint} (given)" in done.text
        url = server.endpoint.replace("http", "etcd")
        done = project.run("-k", "first", ETCD_AIO_TEST_ENDPOINTS=url)
        assert done.counts["passed"] == 1, done.text


def test_factories_make_further_servers_and_clients(project: Project) -> None:
    project.write(
        "conftest.py",
        """
        from pytest_etcd_aio import factories

        etcd_old = factories.server("etcd_old", version="3.5")
        old_client = factories.client("old_client", server="etcd_old", timeout=30.0)
        etcd_other = factories.server("etcd_other", nodes=3, private=True)
        other_client = factories.client("other_client", server="etcd_other")
        second_client = factories.client("second_client")
        """,
    )
    project.write(
        "test_it.py",
        """
        import pytest
        from pytest_etcd_aio import Cluster, Server

        @pytest.mark.asyncio
        async def test_it(
            etcd_client, etcd_server: Server, old_client, etcd_old, other_client, etcd_other: Cluster, second_client
        ):
            assert etcd_old.version.startswith("3.5.") and not etcd_server.version.startswith("3.5.")
            clients = [etcd_client, old_client, other_client, second_client]
            for number, client in enumerate(clients):
                await client.put("key", str(number))
            assert [(await client.get("key")).text() for client in clients] == ["0", "1", "2", "3"]
            assert old_client.endpoints == etcd_old.endpoints
            assert second_client.endpoints == etcd_client.endpoints
            assert len(other_client.endpoints) == 3 == len(etcd_other.members)
            assert isinstance(etcd_server, Server) and isinstance(etcd_other, Cluster)
            await other_client.compact(1)
            with pytest.raises(pytest.UsageError):
                await old_client.compact(1)
            etcd_old.kill()

        @pytest.mark.asyncio
        async def test_again(old_client):
            assert await old_client.get("key") is None
        """,
    )
    assert_passed(project.run(), 2)
