"""contrib/torch/: the state of a rendezvous and the keys of a Store on real servers, without torch.

With torch, `nox -s outside -- torch` runs pytorch's own tests of them.
"""

import os
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import trustme
from anyio.from_thread import BlockingPortal

from etcd_aio.contrib.torch.parameters import read_parameters
from etcd_aio.contrib.torch.run_lease import RunLease
from etcd_aio.contrib.torch.shared_keys import SharedKeys, binary
from etcd_aio.contrib.torch.state import CorruptStateError, SavedState
from etcd_aio.contrib.torch.swaps import Swaps
from etcd_aio.errors import EtcdTimeoutError
from etcd_aio.sync import Client, Store, Txn
from etcd_aio.testing import EtcdCluster, EtcdServer, ServerTLS
from tests.support.auth import QUICK_LOGINS, WEB, enable_auth
from tests.support.certificates import write_ca, write_leaf
from tests.support.servers import QUICK_ELECTIONS

pytestmark = pytest.mark.cluster

_numbers = count()


@pytest.fixture
def client(server: EtcdServer) -> Iterator[Client]:
    with Client(server.endpoint, namespace=f"test-{next(_numbers)}/") as client:
        yield client


def swaps_of(store: Store, ttl: int = 60) -> Swaps:
    return Swaps(store, RunLease(store, ttl, 30.0), 30.0, "swaps/")


def keys_of(store: Store) -> SharedKeys:
    return SharedKeys(store, swaps_of(store))


def state_of(store: Store) -> SavedState:
    return SavedState(store, swaps_of(store), "state")


class LossyTxn:
    """A txn that is applied, and whose answer is lost the first time."""

    def __init__(self, txn: Txn, between: Callable[[], object]) -> None:
        self._txn = txn
        self._between = between
        self._is_first = True

    def when(self, *compares: Any) -> "LossyTxn":
        self._txn.when(*compares)
        return self

    def then(self, *ops: Any) -> "LossyTxn":
        self._txn.then(*ops)
        return self

    def otherwise(self, *ops: Any) -> "LossyTxn":
        self._txn.otherwise(*ops)
        return self

    def commit(self, **options: Any) -> Any:
        result = self._txn.commit(**options)
        if self._is_first:
            self._is_first = False
            self._between()
            raise EtcdTimeoutError
        return result


class LossyStore:
    """A store whose txns are lossy. Between the two attempts, another client changes keys."""

    def __init__(self, store: Store, between: Callable[[], object]) -> None:
        self._store = store
        self._between = between

    def txn(self) -> LossyTxn:
        return LossyTxn(self._store.txn(), self._between)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


def lossy(store: Store, between: Callable[[], object] = lambda: None) -> Any:
    return LossyStore(store, between)


# The state.


def test_a_state_is_replaced_by_its_token(client: Client) -> None:
    state = state_of(client)
    assert state.get() is None
    assert state.set(b"x", 7) is None
    first = state.set(b"x")
    assert first is not None
    assert first[::2] == (b"x", True)
    assert state.get() == first[:2]
    assert state.set(b"y") == (*first[:2], False)
    second = state.set(b"y", first[1])
    assert second is not None
    assert second[::2] == (b"y", True)
    assert second[1] != first[1]
    for token in (first[1], "invalid", 0, -1, True, 1 << 63):
        assert state_of(client).set(b"z", token) == (*second[:2], False)


def test_a_key_with_something_else_is_corrupt(client: Client) -> None:
    client.put("state", "non_base64")
    with pytest.raises(CorruptStateError, match="state of a rendezvous"):
        state_of(client).get()
    with pytest.raises(CorruptStateError):
        state_of(client).set(b"x")


def test_a_lost_answer_is_found_out(client: Client) -> None:
    state = state_of(lossy(client))
    first = state.set(b"x")
    assert first is not None
    assert first[::2] == (b"x", True)
    assert state_of(client).get() == first[:2]


def test_a_lost_answer_is_found_out_although_another_agent_was_next(client: Client) -> None:
    def follow() -> None:
        found = state_of(client).get()
        assert found is not None
        state_of(client).set(b"y", found[1])

    state = state_of(lossy(client, follow))
    first = state.set(b"x")
    assert first is not None
    assert first[::2] == (b"x", True)
    now = state_of(client).get()
    assert now is not None
    assert now[0] == b"y"
    assert now[1] > first[1]


# The lease.


def test_the_keys_have_a_lease_which_is_renewed_by_use_alone(client: Client) -> None:
    now = 0.0
    lease = RunLease(client, 60, 30.0, clock=lambda: now)
    first = lease.current()
    assert lease.current() == first
    time.sleep(3.1)
    before = client.leases.time_to_live(first).ttl
    assert before < 60
    now = 16.0
    assert lease.current() == first
    assert client.leases.time_to_live(first).ttl > before


@pytest.mark.parametrize("seconds", [0.0, 20.0])
def test_a_lease_that_is_gone_is_followed_by_another_one(client: Client, seconds: float) -> None:
    now = 0.0
    lease = RunLease(client, 60, 30.0, clock=lambda: now)
    keys = SharedKeys(client, Swaps(client, lease, 30.0, "swaps/"))
    keys.set(b"a", b"1")
    client.leases.revoke(lease.current())
    now = seconds
    keys.set(b"a", b"2")
    assert keys.wait([b"a"], 0)[b"a"] == b"2"
    kv = client.get("keys/a")
    assert kv is not None
    assert kv.lease == lease.current()


# The keys.


def test_values(client: Client) -> None:
    keys = keys_of(client)
    keys.set(b"a", b"1")
    keys.append(b"a", b"2")
    keys.append(b"b", b"3")
    assert keys.wait([b"a", b"b"], 0) == {b"a": b"12", b"b": b"3"}
    assert keys.count() == 2
    assert keys.check([b"a", b"b"])
    assert not keys.check([b"a", b"c"])
    assert keys.delete(b"a")
    assert not keys.delete(b"a")
    assert keys.count() == 1


def test_compare_set(client: Client) -> None:
    keys = keys_of(client)
    assert keys.compare_set(b"a", b"other", b"new") == b"other"
    assert not keys.check([b"a"])
    assert keys.compare_set(b"a", b"", b"new") == b"new"
    assert keys.compare_set(b"a", b"other", b"newer") == b"new"
    assert keys.compare_set(b"a", b"new", b"newer") == b"newer"


def test_sums_of_threads(client: Client) -> None:
    def work() -> None:
        keys = keys_of(client)
        for _ in range(20):
            keys.add(b"n", 2)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert keys_of(client).add(b"n", -1) == 159


def test_a_sum_whose_answer_is_lost_is_added_once(client: Client) -> None:
    keys = keys_of(lossy(client, lambda: keys_of(client).add(b"n", 10)))
    assert keys.add(b"n", 1) == 1
    assert keys_of(client).add(b"n", 0) == 11


@pytest.mark.parametrize("number", [1, 3, 250])
def test_a_wait_ends_with_the_last_key(client: Client, number: int) -> None:
    keys, others = keys_of(client), keys_of(client)
    wanted = [b"%d" % n for n in range(number)]

    def work() -> None:
        time.sleep(0.3)
        for key in wanted:
            others.set(key, b"v" + key)

    thread = threading.Thread(target=work)
    thread.start()
    found = keys.wait(wanted, 60)
    thread.join()
    assert found == {key: b"v" + key for key in wanted}


def test_a_wait_goes_on_in_a_store_that_was_wiped(portal: BlockingPortal) -> None:
    with portal.wrap_async_context_manager(EtcdServer()) as server, Client(server.endpoint) as client:
        for number in range(10):
            keys_of(client).set(b"other", b"%d" % number)
        found: list[object] = []
        thread = threading.Thread(target=lambda: found.append(keys_of(client).wait([b"k"], 60)))
        thread.start()
        time.sleep(0.3)
        portal.call(partial(server.restart, wipe=True))
        time.sleep(0.5)
        keys_of(client).set(b"k", b"v")
        thread.join()
        assert found == [{b"k": b"v"}]


def test_only_texts_bytes_and_whole_numbers_are_taken(client: Client) -> None:
    assert [binary("ö"), binary(bytearray(b"x")), binary([1, 2])] == ["ö".encode(), b"x", b"\1\2"]
    for other in (5, True, None, 1.5):
        with pytest.raises(TypeError):
            binary(other)  # type: ignore[arg-type]
    for number in (1.5, "1", None):
        with pytest.raises(TypeError):
            keys_of(client).add(b"n", number)  # type: ignore[arg-type]
    assert not keys_of(client).check([b"n"])


def test_a_wait_that_is_too_long(client: Client) -> None:
    keys = keys_of(client)
    keys.set(b"there", b"1")
    with pytest.raises(LookupError, match=r"1 keys were not set within 0\.2 s: b'none'"):
        keys.wait([b"there", b"none"], 0.2)
    with pytest.raises(LookupError):
        keys.wait([b"none"], 0)


def test_a_key_that_is_deleted_while_others_are_missing_is_waited_for_again(client: Client) -> None:
    keys = keys_of(client)
    keys.set(b"a", b"1")

    def work() -> None:
        time.sleep(0.2)
        keys.delete(b"a")
        keys.set(b"b", b"1")
        time.sleep(0.2)
        keys.set(b"a", b"2")

    thread = threading.Thread(target=work)
    thread.start()
    assert keys.wait([b"a", b"b"], 60) == {b"a": b"2", b"b": b"1"}
    thread.join()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_child(client: Client) -> None:
    keys = keys_of(client)
    assert keys.add(b"n", 1) == 1
    pid = os.fork()
    if not pid:
        try:
            code = keys.add(b"n", 2)
        except BaseException:
            code = 99
        os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 3
    assert keys.add(b"n", 1) == 4


def test_a_cluster_that_loses_its_leader(portal: BlockingPortal) -> None:
    with portal.wrap_async_context_manager(EtcdCluster(size=3, **QUICK_ELECTIONS)) as cluster:
        portal.call(cluster.wait_healthy)
        with Client(cluster.endpoints, timeout=60) as client:
            keys, state, total = keys_of(client), state_of(client), 0
            token: int | None = None
            for _ in range(2):
                leader = portal.call(cluster.leader)
                portal.call(leader.kill)
                for _ in range(20):
                    total += 1
                    assert keys.add(b"n", 1) == total
                    saved = state.set(b"%d" % total, token)
                    assert saved is not None
                    assert saved[2]
                    token = saved[1]
                portal.call(leader.restart)
                portal.call(cluster.wait_healthy)


def test_an_outage_that_is_shorter_than_the_timeout_is_not_noticed(portal: BlockingPortal) -> None:
    with portal.wrap_async_context_manager(EtcdServer()) as server, Client(server.endpoint, timeout=60) as client:
        keys, state = keys_of(client), state_of(client)
        assert keys.add(b"n", 1) == 1
        portal.call(server.kill)
        restart = threading.Timer(4, lambda: portal.call(server.restart))
        restart.start()
        assert keys.add(b"n", 1) == 2
        saved = state.set(b"x")
        assert saved is not None
        assert saved[2]
        restart.join()


def test_tls_and_a_user(portal: BlockingPortal, tmp_path: Path) -> None:
    authority = trustme.CA()
    ca = write_ca(authority, tmp_path / "ca.pem")
    files = write_leaf(authority.issue_cert("localhost", "127.0.0.1"), tmp_path, "server")
    name, password = WEB
    (tmp_path / "password").write_text(password)
    tls = ServerTLS(files["cert"], files["key"])
    with portal.wrap_async_context_manager(EtcdServer(tls=tls, flags=[QUICK_LOGINS])) as server:
        portal.call(partial(enable_auth, server, web=True))
        config = {"ca_cert": str(ca), "user": name, "password_file": str(tmp_path / "password"), "prefix": "app/"}
        hosts = f"127.0.0.1:1,{server.endpoint.removeprefix('https://')}"
        with Client(**read_parameters(hosts, config).client_options()) as client:
            client.ping()
            assert keys_of(client).add(b"n", 1) == 1
            saved = state_of(client).set(b"x")
            assert saved is not None
            assert saved[2]


def test_the_keys_are_where_the_page_says(client: Client) -> None:
    keys_of(client).set(b"a", b"1")
    state_of(client).set(b"x")
    found = client.range(all_keys=True).kvs
    assert {kv.key.split(b"/")[0] for kv in found} == {b"keys", b"swaps", b"state"}
    assert all(kv.lease for kv in found)
