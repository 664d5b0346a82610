"""The API of etcd3gw on real servers: what its own tests do not ask, as routes of the gateway, users and watches."""

import gc
import json
import logging
import os
import subprocess
import sys
import threading
import time
from base64 import b64encode
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlsplit

import pytest
import trustme
from anyio.from_thread import BlockingPortal, start_blocking_portal

from etcd_aio.compat import etcd3gw
from etcd_aio.compat.etcd3gw.exceptions import (
    ConnectionFailedError,
    ConnectionTimeoutError,
    Etcd3Exception,
    WatchTimedOut,
)
from etcd_aio.compat.etcd3gw.watch import Watcher
from etcd_aio.testing import EtcdServer, ServerTLS
from tests.support.auth import QUICK_LOGINS, WEB, enable_auth
from tests.support.until import PATIENCE

pytestmark = pytest.mark.cluster


def connect(server: Any, **options: Any) -> etcd3gw.Etcd3Client:
    url = urlsplit(server.endpoint)
    return etcd3gw.client(url.hostname or "", url.port or 0, **options)


@pytest.fixture
def etcd(shared_server: EtcdServer) -> Iterator[etcd3gw.Etcd3Client]:
    with connect(shared_server) as client:
        yield client


@pytest.fixture(scope="module")
def portal() -> Iterator[BlockingPortal]:
    """Runs servers of single tests."""
    with start_blocking_portal() as portal:
        yield portal


@pytest.fixture
def server(portal: BlockingPortal) -> Iterator[EtcdServer]:
    with portal.wrap_async_context_manager(EtcdServer()) as server:
        yield server


def until(is_so: Callable[[], object]) -> None:
    ends = time.monotonic() + PATIENCE
    while not is_so():
        assert time.monotonic() < ends
        time.sleep(0.01)


# The client.


def test_a_client_has_the_urls_of_the_gateway_without_a_request() -> None:
    client = etcd3gw.Etcd3Client("::1", 1, "https", timeout=3)
    assert (client.host, client.port, client.protocol, client.timeout) == ("::1", 1, "https", 3)
    assert (client.api_path, client.base_url) == ("/v3/", "https://[::1]:1")
    assert client.get_url("/lease/grant") == "https://[::1]:1/v3/lease/grant"
    assert etcd3gw.client(api_path="/v3beta/").get_url("kv/put") == "http://localhost:2379/v3beta/kv/put"


def test_a_client_connects_again_after_a_close(etcd: etcd3gw.Etcd3Client, prefix: str) -> None:
    etcd.put(prefix, "v")
    etcd.close()
    etcd.close()
    assert etcd.get(prefix) == [b"v"]


def test_a_server_that_refuses_the_connection_is_an_error_at_once(portal: BlockingPortal, server: EtcdServer) -> None:
    client = connect(server)
    portal.call(server.terminate)
    with pytest.raises(ConnectionFailedError):
        client.get("k")
    with pytest.raises(ConnectionFailedError):
        client.watch("k")
    client.close()


def test_a_frozen_server_is_a_timeout(server: EtcdServer) -> None:
    with connect(server, timeout=1.5) as client:
        client.put("k", "v")
        server.pause()
        with pytest.raises((ConnectionTimeoutError, ConnectionFailedError)):  # its connection may be given up first
            client.get("k")
        server.resume()


def test_tls_by_files_and_by_a_session(portal: BlockingPortal, tmp_path: Path) -> None:
    authority = trustme.CA()
    own = authority.issue_cert("127.0.0.1")
    files = [tmp_path / name for name in ("own.pem", "own.key", "ca.pem")]
    own.cert_chain_pems[0].write_to_path(files[0])
    own.private_key_pem.write_to_path(files[1])
    authority.cert_pem.write_to_path(files[2])
    certificate, key, ca = map(str, files)
    tls = ServerTLS(files[0], files[1], client_ca=files[2])
    with portal.wrap_async_context_manager(EtcdServer(tls=tls)) as server:
        session = SimpleNamespace(headers={}, verify=ca, cert=(certificate, key))
        for options in ({"ca_cert": ca, "cert_cert": certificate, "cert_key": key}, {"session": session}):
            with connect(server, protocol="https", **options) as client:
                client.put("k", "v")
                assert client.get("k") == [b"v"]
        session.verify = False
        with connect(server, protocol="https", session=session) as client, pytest.raises(ValueError, match="refused"):
            client.sync.get("k")
        with connect(server, protocol="https") as client, pytest.raises(ConnectionFailedError, match="certificate"):
            client.get("k")


def test_a_client_works_in_a_forked_process(etcd: etcd3gw.Etcd3Client, prefix: str) -> None:
    etcd.put(prefix, "parent")
    child = os.fork()
    if not child:
        try:
            is_right = etcd.get(prefix) == [b"parent"] and etcd.put(prefix, "child")
            os._exit(0 if is_right else 1)
        finally:
            os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert etcd.get(prefix) == [b"child"]


# Keys.


def test_keys_have_metadata_as_text(etcd: etcd3gw.Etcd3Client, prefix: str) -> None:
    lease = etcd.lease(60)
    etcd.put(prefix, "", lease)
    ((value, kv),) = etcd.get(prefix, metadata=True)
    revision = kv["mod_revision"]
    assert value == b""
    assert kv == {
        "key": prefix.encode(),
        "create_revision": revision,
        "mod_revision": revision,
        "version": "1",
        "lease": f"{lease.id}",
    }
    assert int(revision) > 0
    lease.revoke()
    assert etcd.get(prefix, metadata=True) == []


def test_prefixes_of_bytes_and_of_text_that_is_not_ascii(etcd: etcd3gw.Etcd3Client, prefix: str) -> None:
    etcd.put(f"{prefix}\u00ffa", "1")
    etcd.put(prefix.encode() + b"\xffb", "2")
    etcd.put(f"{prefix}z", "3")
    assert [value for value, _ in etcd.get_prefix(f"{prefix}\u00ff")] == [b"1", b"2"]
    assert [value for value, _ in etcd.get_prefix(prefix.encode() + b"\xff", "descend", "key")] == [b"2", b"1"]
    event = etcd.watch_prefix_once(prefix.encode() + b"\xff", 30, start_revision=1, filters=["NODELETE"])
    assert event["kv"].get("value") == b"1"
    assert etcd.delete_prefix(prefix.encode() + b"\xff")
    assert [value for value, _ in etcd.get_prefix(prefix)] == [b"3"]
    with pytest.raises(ValueError, match="every key"):
        etcd.delete_prefix("")


def test_options_of_get_and_those_that_etcd_does_not_have(etcd: etcd3gw.Etcd3Client, prefix: str) -> None:
    for name in "abc":
        etcd.put(prefix + name, name)
    end = f"{prefix}c"
    assert etcd.get(f"{prefix}a", range_end=end, limit=1) == [b"a"]
    assert etcd.get(f"{prefix}a", range_end=end, keys_only=True, serializable=True) == [b"", b""]
    assert etcd.get(f"{prefix}a", range_end=end, count_only=True) == []
    assert etcd.get(f"{prefix}a", sort_order="none", sort_target="version") == [b"a"]
    with pytest.raises(ValueError, match="sort_order"):
        etcd.get("k", sort_order="up")
    with pytest.raises(ValueError, match="sort_target"):
        etcd.get("k", sort_target="size")
    with pytest.warns(DeprecationWarning, match="unknown arguments: colour"):
        assert etcd.get(f"{prefix}b", colour="red") == [b"b"]
    with pytest.raises(Etcd3Exception) as caught:
        etcd.get("k", revision=2**40)
    assert str(caught.value) == "Bad Request"
    assert json.loads(caught.value.detail_text or "")["code"] == 11


def test_keys_are_created_once_and_replaced(etcd: etcd3gw.Etcd3Client, prefix: str) -> None:
    assert etcd.create(prefix, "1")
    assert not etcd.create(prefix, "2")
    assert not etcd.replace(prefix, "2", "3")
    assert etcd.replace(prefix, b"1", b"3")
    assert etcd.get(prefix) == [b"3"]


# Requests.


def test_requests_of_the_gateway(etcd: etcd3gw.Etcd3Client, prefix: str) -> None:
    key = b64encode(prefix.encode()).decode()
    put = etcd.post(etcd.get_url("/kv/put"), json={"key": key, "value": "dg==", "prev_kv": True})
    assert set(put) == {"header"}
    found = etcd.post(etcd.get_url("/kv/range"), data=json.dumps({"key": key}))
    assert (found["count"], found["kvs"][0]["value"]) == ("1", "dg==")
    txn = etcd.transaction(
        {
            "compare": [{"key": key, "target": "VERSION", "result": "GREATER", "version": "5"}],
            "success": [{"requestPut": {"key": key, "value": "bm8="}}],
            "failure": [{"requestRange": {"key": key}}, {"request_delete_range": {"key": key}}],
        }
    )
    assert "succeeded" not in txn
    read, deleted = txn.get("responses", [])
    assert read["response_range"]["kvs"][0]["key"] == key
    assert deleted["response_delete_range"]["deleted"] == "1"


def test_requests_that_are_refused(etcd: etcd3gw.Etcd3Client) -> None:
    for url, request, reason in (
        ("/kv/put", {"key": "not base64!"}, "Bad Request"),
        ("/kv/put", {"key": ""}, "Bad Request"),
        ("/kv/txn", ["no object"], "Bad Request"),
        ("/kv/lease/revoke", {"ID": 1}, "Not Found"),
        ("/lease/grant", {"TTL": "long"}, "Bad Request"),
        ("/auth/user/add", {}, "Not Found"),
    ):
        with pytest.raises(Etcd3Exception) as caught:
            etcd.post(etcd.get_url(url), json=request)
        assert (type(caught.value), str(caught.value)) == (Etcd3Exception, reason)


def test_the_status_and_the_members(server: EtcdServer) -> None:
    with connect(server) as client:
        status, (member,) = client.status(), client.members()
        assert (status["version"], status["leader"]) == (server.version, member["ID"])
        assert status["header"]["member_id"] == member["ID"]
        assert int(status["raftTerm"]) == int(status["header"]["raft_term"])
        assert (member.get("name"), member.get("clientURLs")) == (server.name, [server.endpoint])
        client.put("k", "v")
        client.post(client.get_url("/kv/compaction"), json={"revision": "2", "physical": True})
        client.lease(60)
        assert len(client.post(client.get_url("/lease/leases"), json={})["leases"]) == 1


class LoggingIn(etcd3gw.Etcd3Client):
    """A client that logs in when a call is refused, as programs write it."""

    logins = 0

    def post(self, *arguments: Any, **keywords: Any) -> Any:
        try:
            return super().post(*arguments, **keywords)
        except Etcd3Exception as error:
            if "user name is empty" not in str(error.detail_text):
                raise
        self.logins += 1
        name, password = WEB
        answer = super().post(self.get_url("/auth/authenticate"), json={"name": name, "password": password})
        self.session.headers["Authorization"] = answer["token"]
        return super().post(*arguments, **keywords)


def test_a_program_logs_in_by_a_request(portal: BlockingPortal) -> None:
    with portal.wrap_async_context_manager(EtcdServer(flags=[QUICK_LOGINS])) as server:
        portal.call(lambda: enable_auth(server, web=True))
        url = urlsplit(server.endpoint)
        with LoggingIn(url.hostname or "", url.port or 0) as client:
            assert client.put("app/k", "v")
            assert client.get("app/k") == [b"v"]
            assert client.logins == 1
            with pytest.raises(Etcd3Exception) as caught:
                client.put("other", "v")
            assert str(caught.value) == "Forbidden"
            with pytest.raises(Etcd3Exception) as caught:
                client.post(client.get_url("/auth/authenticate"), json={"name": "web", "password": "wrong"})
            assert str(caught.value) == "Bad Request"
            assert client.get("app/k") == [b"v"]


# Watches.


def test_events_of_a_watch(etcd: etcd3gw.Etcd3Client, prefix: str) -> None:
    events, cancel = etcd.watch(prefix, prev_kv=True, watch_id=7, fragment=True)
    etcd.put(prefix, "1")
    etcd.put(prefix, "")
    etcd.delete(prefix)
    first, second, third = next(events), next(events), next(events)
    assert "type" not in first
    assert "prev_kv" not in first
    assert first["kv"] == {
        "key": prefix.encode(),
        "value": b"1",
        "create_revision": first["kv"]["mod_revision"],
        "mod_revision": first["kv"]["mod_revision"],
        "version": "1",
    }
    assert "value" not in second["kv"]
    assert (third.get("type"), set(third["kv"])) == ("DELETE", {"key", "mod_revision"})
    before: Any = third.get("prev_kv")
    assert before["key"] == b64encode(prefix.encode()).decode()
    cancel()
    cancel()
    assert list(events) == []


def test_a_watch_is_cancelled_from_another_thread(etcd: etcd3gw.Etcd3Client, prefix: str) -> None:
    events, cancel = etcd.watch_prefix(prefix)
    seen: list[Any] = []

    def read() -> None:
        for event in events:
            seen.append(event)  # noqa: PERF402 - one by one

    reader = threading.Thread(target=read)
    reader.start()
    etcd.put(prefix, "v")
    until(lambda: seen)
    cancel()
    reader.join(PATIENCE)
    assert not reader.is_alive()
    assert [event["kv"]["value"] for event in seen] == [b"v"]


def test_a_watch_outlasts_a_restart_of_its_server(portal: BlockingPortal, server: EtcdServer) -> None:
    with connect(server) as client:
        events, cancel = client.watch_prefix("k")
        client.put("k1", "v")
        portal.call(server.restart)
        client.sync.wait_ready(PATIENCE)  # a call fails at once if the last dial was refused
        client.put("k2", "v")
        assert [next(events)["kv"]["key"], next(events)["kv"]["key"]] == [b"k1", b"k2"]
        cancel()


def test_a_watch_of_what_was_compacted_is_an_error(server: EtcdServer) -> None:
    with connect(server) as client:
        for _ in range(3):
            client.put("k", "v")
        client.sync.compact(4)
        with pytest.raises(Etcd3Exception) as caught:
            next(client.watch("k", start_revision=1)[0])
        assert "compacted" in str(caught.value.detail_text)


def test_a_watch_that_waits_once_has_a_limit(etcd: etcd3gw.Etcd3Client, prefix: str) -> None:
    with pytest.raises(WatchTimedOut, match=r"within 0\.1 seconds"):
        etcd.watch_once(prefix, 0.1)
    etcd.put(prefix, "v")
    ((_, kv),) = etcd.get(prefix, metadata=True)
    event = etcd.watch_once(prefix, 30, start_revision=int(kv["mod_revision"]))
    assert event["kv"].get("value") == b"v"
    with pytest.warns(DeprecationWarning, match="unknown arguments: colour"), pytest.raises(WatchTimedOut):
        etcd.watch_prefix_once(f"{prefix}none", 0.1, colour="red")


def test_a_callback_has_a_thread_and_may_fail(
    etcd: etcd3gw.Etcd3Client, prefix: str, caplog: pytest.LogCaptureFixture
) -> None:
    seen: list[bytes] = []
    threads: set[str] = set()

    def callback(event: etcd3gw.types.Event) -> None:
        threads.add(threading.current_thread().name)
        seen.append(event["kv"].get("value", b""))
        etcd.get(prefix)  # a callback may make calls
        if seen[-1] == b"1":
            raise ZeroDivisionError

    watcher = Watcher(etcd, prefix, callback)
    with caplog.at_level(logging.ERROR, "etcd3gw.watch"):
        for number in range(4):
            etcd.put(prefix, f"{number}")
        until(lambda: len(seen) == 4)
    assert seen == [b"0", b"1", b"2", b"3"]
    assert threads == {"etcd3gw watch"}
    assert "ZeroDivisionError" in caplog.text
    watcher.stop()
    until(lambda: "etcd3gw watch" not in {thread.name for thread in threading.enumerate()})


def test_watches_leave_nothing_behind_whether_cancelled_or_dropped(
    etcd: etcd3gw.Etcd3Client, prefix: str, caplog: pytest.LogCaptureFixture
) -> None:
    with connect(SimpleNamespace(endpoint=etcd.base_url)) as client:
        for _ in range(3):
            events, cancel = client.watch(prefix)
            cancel()
            with pytest.raises(WatchTimedOut):
                client.watch_once(prefix, 0.01)
            Watcher(client, prefix, print).stop()
            events, cancel = client.watch(prefix)
            del events
            gc.collect()
        until(lambda: not client.sync.streams())
        until(lambda: not {"etcd3gw dropped", "etcd3gw watch"} & {thread.name for thread in threading.enumerate()})
    gc.collect()
    assert "destroyed" not in caplog.text


ENDS = """
import sys, threading
import etcd3gw
from etcd3gw.watch import Watcher

client = etcd3gw.client(port=int(sys.argv[1]))
events, _ = client.watch(sys.argv[2])
is_seen = threading.Event()

def read():
    for _ in events:
        is_seen.set()

threading.Thread(target=read, daemon=True).start()
Watcher(client, sys.argv[2], print)
client.lock(sys.argv[2], 60).acquire()
client.put(sys.argv[2], "v")
assert is_seen.wait(30)
"""


def test_a_program_that_ends_with_open_watches_ends_in_silence(
    shared_server: EtcdServer, prefix: str, tmp_path: Path
) -> None:
    program = tmp_path / "program.py"
    program.write_text(ENDS)
    port = str(urlsplit(shared_server.endpoint).port)
    command = [sys.executable, "-m", "etcd_aio.compat", "etcd3gw", "--", str(program), port, prefix]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")


# Leases and locks.


def test_a_lease_that_has_ended(etcd: etcd3gw.Etcd3Client, prefix: str) -> None:
    lease = etcd.lease(60)
    etcd.put(prefix, "v", lease)
    assert (lease.keys(), lease.refresh()) == ([prefix.encode()], 60)
    assert 0 < lease.ttl() <= 60
    assert lease.revoke() is True
    assert (lease.keys(), lease.ttl(), lease.refresh()) == ([], -1, -1)
    with pytest.raises(Etcd3Exception) as caught:
        lease.revoke()
    assert str(caught.value) == "Not Found"


def test_a_lock_is_tried_once_and_leaves_no_leases_behind(server: EtcdServer) -> None:
    with connect(server) as client:
        first, second = client.lock("lock", 60), client.lock("lock", 60)
        assert first.acquire()
        assert not first.acquire()
        assert not second.acquire()
        assert first.lease is not None
        assert client.sync.leases.list().ids == (first.lease.id,)
        assert client.get("/locks/lock") == [first.uuid.encode()]
        with pytest.raises(Etcd3Exception, match="acquire it first"):
            second.refresh()
        assert (first.refresh(), first.is_acquired(), second.is_acquired()) == (60, True, False)
        assert not second.release()
        assert first.release()
        assert not first.release()
        with second as held:
            assert held.is_acquired()
        assert not second.is_acquired()
