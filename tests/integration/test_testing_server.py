"""A real server: starting, faults by signal, restarting, and that nothing outlives the tests, even killed ones."""

# Files and the processes of others have no events to wait for.
# ruff: noqa: ASYNC110, ASYNC240

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import trustme

from etcd_aio.testing import EtcdNotFoundError, EtcdServer, EtcdStartError, ServerTLS
from etcd_aio.testing.health_probe import ask, is_healthy
from etcd_aio.testing.ports import free_ports
from etcd_aio.testing.process import ChildProcess
from tests.support.until import PATIENCE

pytestmark = [pytest.mark.anyio, pytest.mark.cluster]


@pytest.fixture
async def server() -> AsyncIterator[EtcdServer]:
    async with EtcdServer() as server:
        yield server


def is_alive(pid: int) -> bool:
    """Whether a process runs; one that waits to be reaped does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


async def gone(pid: int) -> bool:
    async with asyncio.timeout(PATIENCE):
        while is_alive(pid):
            await asyncio.sleep(0.01)
    return True


async def revision(server: EtcdServer) -> int:
    header = (await ask(server.endpoint, "/v3/kv/range", body={"key": "AA=="}))["header"]
    assert isinstance(header, dict)
    return int(header["revision"])


async def put(server: EtcdServer) -> None:
    await ask(server.endpoint, "/v3/kv/put", body={"key": "aw==", "value": "dg=="})


async def test_it_runs_tells_where_and_leaves_nothing() -> None:
    async with EtcdServer("me") as server:
        assert server.endpoints == (server.endpoint,)
        assert await is_healthy(server.endpoint)
        assert server.version == server.binary.version
        assert server.name == "me"
        assert (server.data_dir / "member").is_dir()
        assert "serving client traffic" in server.log_path.read_text()
        assert Path(f"/proc/{server.pid}/exe").resolve() == server.binary.path.resolve()
        status = await server.raft_status()
        assert status.leader_id == status.member_id != 0
        pid, folder = server.pid, server.data_dir.parent
        with pytest.raises(RuntimeError, match="started already"):
            await server.start()
        assert "me" in repr(server)
        assert str(pid) in repr(server)
    assert not is_alive(pid)
    assert not folder.exists()
    await server.aclose()


async def test_after_a_kill_it_comes_back_with_its_data_and_ports(server: EtcdServer) -> None:
    await put(server)
    endpoint, pid = server.endpoint, server.pid
    await server.kill()
    await server.kill()
    assert not server.is_running
    assert not is_alive(pid)
    assert not await is_healthy(endpoint)
    await server.restart()
    assert (server.endpoint, server.is_running) == (endpoint, True)
    assert server.pid != pid
    assert await revision(server) == 2


async def test_a_wiped_server_knows_nothing(server: EtcdServer) -> None:
    await put(server)
    await server.restart(wipe=True)
    assert await revision(server) == 1


async def test_terminate_is_graceful(server: EtcdServer) -> None:
    server.pause()
    await server.terminate()
    assert not server.is_running
    assert "closed etcd server" in server.log_tail()
    await server.restart()


async def test_a_server_that_does_not_terminate_in_time_is_killed(
    server: EtcdServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    send = ChildProcess.send

    def send_all_but_sigterm(process: ChildProcess, number: signal.Signals) -> None:
        if number != signal.SIGTERM:
            send(process, number)

    monkeypatch.setattr(ChildProcess, "send", send_all_but_sigterm)  # as if etcd paid no attention to it
    with pytest.raises(TimeoutError, match="was killed"):
        await server.terminate(timeout=0)
    assert not server.is_running


async def test_a_paused_server_is_silent_until_resumed(server: EtcdServer) -> None:
    server.pause()
    assert server.is_paused
    assert server.is_running
    assert not await is_healthy(server.endpoint)
    with pytest.raises(EtcdStartError, match="not ready within"):
        await server.wait_ready(timeout=0)
    server.resume()
    assert not server.is_paused
    await server.wait_ready()


async def test_a_paused_server_is_ended_too() -> None:
    async with EtcdServer() as server:
        server.pause()
        pid = server.pid
    assert not is_alive(pid)


async def test_a_server_that_died_by_itself_is_not_waited_for(server: EtcdServer) -> None:
    os.kill(server.pid, signal.SIGKILL)
    with pytest.raises(EtcdStartError, match="ended with exit code -9"):
        await server.wait_ready()
    with pytest.raises(RuntimeError, match="does not run"):
        server.pause()


async def test_an_exception_in_the_body_ends_it() -> None:
    seen: list[int] = []

    async def body() -> None:
        async with EtcdServer() as server:
            seen.append(server.pid)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await body()
    assert not is_alive(seen[0])


@pytest.mark.parametrize("has_process", [False, True])
async def test_cancelling_a_start_leaves_nothing(
    has_process: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    server = EtcdServer()
    starting = asyncio.create_task(server.start())
    await asyncio.sleep(0)
    while has_process and not server.is_running:
        await asyncio.sleep(0)
    assert not starting.done()
    starting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await starting
    assert not server.is_running
    assert list(tmp_path.iterdir()) == []


async def test_cancelling_a_close_does_not_stop_it(monkeypatch: pytest.MonkeyPatch) -> None:
    async def wait(process: ChildProcess, timeout: float) -> bool:
        return await asyncio.Future()  # as if it took its time

    server = EtcdServer()
    await server.start()
    pid, folder = server.pid, server.data_dir.parent
    monkeypatch.setattr(ChildProcess, "wait", wait)
    closing = asyncio.create_task(server.aclose())
    await asyncio.sleep(0)
    closing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await closing
    assert not is_alive(pid)
    assert not folder.exists()


async def test_a_server_that_cannot_start_shows_its_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with pytest.raises(EtcdStartError, match="flag provided but not defined: -nonsense") as caught:
        await EtcdServer(flags=["--nonsense"]).start()
    assert not caught.value.is_port_taken
    assert list(tmp_path.iterdir()) == []


async def test_a_stranger_on_the_port_is_not_taken_for_our_server(server: EtcdServer) -> None:
    port = int(server.endpoint.rpartition(":")[2])
    with pytest.raises(EtcdStartError) as caught:
        await EtcdServer(ports=(port, free_ports(1)[0])).start()
    assert caught.value.is_port_taken


async def test_taken_ports_are_given_up_for_others(server: EtcdServer, monkeypatch: pytest.MonkeyPatch) -> None:
    port = int(server.endpoint.rpartition(":")[2])
    choices = iter([(port, port + 1), free_ports(2)])
    monkeypatch.setattr("etcd_aio.testing.server.free_ports", lambda count, host: next(choices))
    async with EtcdServer() as other:
        assert other.endpoint != server.endpoint


async def test_a_given_directory_is_kept(tmp_path: Path) -> None:
    async with EtcdServer("kept", directory=tmp_path) as server:
        await put(server)
    assert (tmp_path / "kept" / "etcd.log").exists()
    async with EtcdServer("kept", directory=tmp_path) as server:
        assert await revision(server) == 2


async def test_flags_environment_and_times_reach_it() -> None:
    async with EtcdServer(
        flags=["--max-txn-ops=7"], env={"ETCD_QUOTA_BACKEND_BYTES": "99999999"}, election_ms=500
    ) as server:
        log = server.log_path.read_text()
        assert "--max-txn-ops=7" in (await server.raft_status()).command_line
    assert "ETCD_QUOTA_BACKEND_BYTES" in log
    assert "500ms" in log


async def test_no_fitting_binary(tmp_path: Path) -> None:
    with pytest.raises(EtcdNotFoundError):
        await EtcdServer(version=">=99").start()
    with pytest.raises(EtcdNotFoundError):
        await EtcdServer(binary=tmp_path / "etcd").start()


@pytest.mark.parametrize("with_client_certificates", [False, True])
async def test_tls(tmp_path: Path, with_client_certificates: bool) -> None:
    authority = trustme.CA()
    certificate = authority.issue_cert("127.0.0.1", "localhost")
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    certificate.private_key_pem.write_to_path(str(tmp_path / "key.pem"))
    for part in certificate.cert_chain_pems:
        part.write_to_path(str(tmp_path / "cert.pem"), append=True)
    client_ca = tmp_path / "ca.pem" if with_client_certificates else None
    async with EtcdServer(tls=ServerTLS(tmp_path / "cert.pem", tmp_path / "key.pem", client_ca)) as server:
        assert server.endpoint.startswith("https://")
        assert await is_healthy(server.endpoint, server.probe_tls)
        assert not await is_healthy(server.endpoint.replace("https", "http"))
        await server.restart()


def test_it_may_live_across_loops() -> None:
    server = EtcdServer()
    asyncio.run(server.start())
    try:
        asyncio.run(server.restart())
        assert server.is_running
    finally:
        asyncio.run(server.aclose())
    assert not server.is_running


ORPHAN = """
import asyncio, os, signal, sys
from etcd_aio.testing import EtcdCluster, EtcdServer

async def main():
    server = EtcdServer()
    await server.start()
    other = EtcdServer()
    await other.start()
    other.pause()
    print(server.pid, other.pid, server.data_dir.parent, other.data_dir.parent, flush=True)
    {end}
    await asyncio.sleep(1000)

asyncio.run(main())
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends a child with its killed parent")
@pytest.mark.parametrize(
    ("end", "exit_code"),
    [
        ("os.kill(os.getpid(), signal.SIGKILL)", -signal.SIGKILL),
        pytest.param("os.kill(os.getpid(), signal.SIGTERM)", -signal.SIGTERM, marks=pytest.mark.nightly),
        pytest.param("os._exit(3)", 3, marks=pytest.mark.nightly),
        ("sys.exit(4)", 4),
    ],
)
async def test_however_the_test_process_ends_its_servers_end_with_it(tmp_path: Path, end: str, exit_code: int) -> None:
    child = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        ORPHAN.format(end=end),
        stdout=subprocess.PIPE,
        env={**os.environ, "TMPDIR": str(tmp_path), "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    output, _ = await child.communicate()
    assert child.returncode == exit_code
    pids = [int(word) for word in output.split()[:2]]
    assert len(pids) == 2
    for pid in pids:
        assert await gone(pid)


@pytest.mark.nightly
async def test_at_exit_servers_end_even_without_the_kernels_help(tmp_path: Path) -> None:
    """As on systems other than Linux: the launcher is left out, so only atexit is there."""
    program = "from etcd_aio.testing import process\nprocess._launcher = tuple\n" + ORPHAN.format(end="sys.exit(4)")
    child = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        program,
        stdout=subprocess.PIPE,
        env={**os.environ, "TMPDIR": str(tmp_path), "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    output, _ = await child.communicate()
    assert child.returncode == 4
    for word in output.split()[:2]:
        assert await gone(int(word))
