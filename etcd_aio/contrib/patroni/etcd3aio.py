"""Etcd3Aio: Patroni's interface to a distributed configuration store, on etcd's gRPC API.

Theory. Patroni's loop loads the cluster, renews its lease, and writes a few keys; then it waits. A primary whose loop
raises `DCSError` is demoted, or goes on in failsafe mode. So each method ends within `retry_timeout`, or the third of
it where Patroni counts on less, and a call moves to another member as long as there is time.

Moving means that a write may run twice, the second time perhaps much later, when a frozen member goes on. So each
write is one whose second copy does no harm, and whose result is told by what is in the store after it: a key that
must not be there is compared, and if it is, it is read. It is ours if it has our value and our lease.

The lease is renewed by Patroni's loop alone (`session.py`).
"""

import json
import logging
import time
from collections.abc import Callable
from typing import Any, Final, TypeVar

from etcd_aio import Compare, EtcdError, Key, KeyValue, Op, op
from etcd_aio.contrib.missing import missing
from etcd_aio.contrib.patroni.clusters import by_name, cluster_of
from etcd_aio.contrib.patroni.session import Session
from etcd_aio.contrib.patroni.settings import Settings, SettingsError, settings_of
from etcd_aio.contrib.patroni.watched import Watched
from etcd_aio.errors import ConfigError, LeaseNotFoundError, ServerError
from etcd_aio.sync import Client

try:
    from patroni.dcs import AbstractDCS, Cluster, Leader
    from patroni.exceptions import DCSError, PatroniFatalException
    from patroni.utils import deep_compare
except ModuleNotFoundError as _error:
    raise missing(__name__, "patroni", _error, "patroni") from _error

T = TypeVar("T")
Left = Callable[[], float]
"""The seconds that are left for a method."""

_log: Final = logging.getLogger("etcd_aio.contrib.patroni")
_SECTION: Final = "etcd3aio"
_START_PAUSE: Final = 5.0  # seconds between two tries at the start, as with Patroni's own drivers
_REPLICA_SECONDS: Final = 0.5  # more for the loops of nodes that follow a leader, so that its loop comes first
_PART: Final = 3  # of `retry_timeout`: for a write that Patroni adds to another call, and for the cache


class Etcd3AioError(DCSError):  # type: ignore[misc] # Patroni has no types
    """etcd cannot be reached, or not in time."""


class Etcd3Aio(AbstractDCS):  # type: ignore[misc] # as above
    """The store of one node of Patroni, or of `patronictl`.

    Args:
        config: the section `etcd3aio`, and the settings of Patroni's loop.
        mpp: the kind of cluster.
    """

    def __init__(self, config: dict[str, Any], mpp: Any) -> None:
        super().__init__(config, mpp)
        self._ttl = int(config.get("ttl") or 30)
        self._retry_timeout = float(config.get("retry_timeout") or 10)
        self._session = Session(time.monotonic)
        self._has_new_ttl = False
        self._has_failed = False
        try:
            self._connect(settings_of(config))
        except (SettingsError, ConfigError) as error:
            raise PatroniFatalException(str(error)) from error
        if not self._ctl:
            self._begin()

    def _connect(self, settings: Settings) -> None:
        self._client = Client(settings.endpoints or None, timeout=self._retry_timeout, **settings.options())
        self._settings = settings  # those in use: a reload tries again what has failed
        self._watched: Watched | None = None
        if not self._ctl:
            own = self.client_path("")
            prefix = f"{self._base_path}/" if self.is_mpp_coordinator() else own
            self._watched = Watched(self._client, prefix, own, self._name, self.event.set)

    def _begin(self) -> None:
        """Wait until there is a lease."""
        while self._session.id is None:
            try:
                self._renew(self._limit())
            except EtcdError as error:
                _log.info("waiting on etcd: %s", error)
                time.sleep(_START_PAUSE)
        self._find_members()

    def _find_members(self) -> None:
        """Use the URLs that the members advertise, now; the client looks again from time to time."""
        if self._settings.finds_members:
            try:
                self._client.sync(timeout=self._retry_timeout)
            except EtcdError as error:
                _log.warning("the endpoints stay as they are: %s", error)

    def close(self) -> None:
        """End the watch and the connections. The lease ends by its TTL."""
        if self._watched is not None:
            self._watched.close()
        self._client.close()

    # Settings.

    @property
    def ttl(self) -> int:
        """Seconds that the lease lasts."""
        return self._ttl

    def set_ttl(self, ttl: int) -> bool | None:
        """Use another TTL: it takes another lease, and the next `watch` returns at once."""
        if self._ttl != int(ttl):
            self._ttl = int(ttl)
            self._session.id = None
            self._has_new_ttl = True
        return None

    def set_retry_timeout(self, retry_timeout: float) -> None:
        """Use another limit for each method."""
        self._retry_timeout = float(retry_timeout)

    def reload_config(self, config: Any) -> None:
        """Use the settings of the loop, and connect anew if the section has changed."""
        super().reload_config(config)
        try:
            settings = settings_of(config.get(_SECTION) or {})
            if settings != self._settings:
                old_client, old_watched = self._client, self._watched
                self._connect(settings)
                if old_watched is not None:
                    old_watched.close()
                old_client.close()
                self._find_members()
        except (SettingsError, EtcdError) as error:
            _log.error("the section %s is not used: %s", _SECTION, error)

    # Calls within their limits.

    def _limit(self, parts: int = 1) -> Left:
        end = time.monotonic() + self._retry_timeout / parts
        return lambda: max(0.0, end - time.monotonic())

    def _tried(self, what: str, call: Callable[[Left], T], parts: int = 1) -> T | bool:
        """Make calls. False if they fail."""
        try:
            result = call(self._limit(parts))
        except EtcdError as error:
            self._failed(what, error)
            return False
        self._has_failed = False
        return result

    def _needed(self, what: str, call: Callable[[Left], T]) -> T | bool:
        """Make calls. False if etcd refuses them.

        Raises:
            Etcd3AioError: etcd did not answer.
        """
        try:
            result = call(self._limit())
        except EtcdError as error:
            self._failed(what, error)
            if isinstance(error, ServerError) and not error.retryable:
                return False
            raise Etcd3AioError(f"{what}: {error}") from error
        self._has_failed = False
        return result

    def _failed(self, what: str, error: Exception) -> None:
        """Log a failure: the first one with all details."""
        if self._has_failed:
            _log.error("%s: %s", what, error)
        else:
            _log.error("%s: %s", what, error, exc_info=error)
        self._has_failed = True

    def _renew(self, left: Left) -> None:
        self._session.renew(self._client, self._ttl, self._loop_wait, left)

    def _put(self, key: str, value: str, left: Left, lease: int | None = None) -> bool:
        self._client.put(key, value, lease=lease, timeout=left(), retry="always")
        return True

    def _commit(self, left: Left, condition: Compare, then: Op, otherwise: Op) -> Any:
        txn = self._client.txn().when(condition).then(then).otherwise(otherwise)
        return txn.commit(timeout=left(), retry="always")

    def _put_at(self, key: str, value: str, version: Any, left: Left) -> int:
        """Put a key that must not have changed since a version, if there is one. Returns the new version, or 0."""
        if version is None:
            return self._client.put(key, value, timeout=left(), retry="always").revision
        result = self._commit(left, Key(key).mod_revision == int(version), op.put(key, value), op.get(key))
        if result:
            return int(result.revision)
        found: KeyValue | None = result.responses[0]
        return found.mod_revision if found is not None and found.text() == value else 0

    def _create_leader(self, left: Left) -> bool:
        """Create the leader key, which must not exist. Returns whether it is ours."""
        put = op.put(self.leader_path, self._name, lease=self._session.id)
        result = self._commit(left, Key(self.leader_path).missing, put, op.get(self.leader_path))
        if result:
            return True
        found: KeyValue | None = result.responses[0]
        return found is not None and found.text() == self._name and found.lease == self._session.id

    # The cluster.

    def _nodes(self, prefix: str) -> list[KeyValue]:
        """The keys of a prefix, as new as this call: from the cache, or from etcd if the watch is behind."""
        left = self._limit()
        if self._watched is not None:
            found = self._watched.current(prefix, self._retry_timeout / _PART)
            if found is not None:
                return found
        return list(self._client.range(prefix=prefix, timeout=left()).kvs)

    def _postgresql_cluster_loader(self, path: str) -> Cluster:
        cluster = cluster_of(by_name(self._nodes(path), path))
        leader = cluster.leader
        if not self._ctl and leader and leader.name == self._name and leader.session != self._session.id:
            _log.warning("the leader key has the name of this node, but the lease of another session")
        return cluster

    def _mpp_cluster_loader(self, path: str) -> dict[int, Cluster]:
        groups: dict[int, dict[str, KeyValue]] = {}
        for name, kv in by_name(self._nodes(path), path).items():
            group, _, rest = name.partition("/")
            if rest and self._mpp.group_re.match(group):
                groups.setdefault(int(group), {})[rest] = kv
        return {group: cluster_of(nodes) for group, nodes in groups.items()}

    def _load_cluster(self, path: str, loader: Callable[[str], T]) -> T:
        try:
            result = loader(path)
        except Exception as error:  # Patroni demotes or enters the failsafe mode by a DCSError alone
            self._failed("get_cluster", error)
            raise Etcd3AioError("etcd is not responding properly") from error
        self._has_failed = False
        return result

    def watch(self, leader_version: Any, timeout: float) -> bool:
        """Wait until something has changed. Returns whether the loop is to run at once."""
        self._session.make_due()
        if self._has_new_ttl:
            self._has_new_ttl = False
            return True
        try:
            return bool(super().watch(None, timeout + (_REPLICA_SECONDS if leader_version else 0.0)))
        finally:
            self.event.clear()

    # The keys of this node.

    def touch_member(self, data: dict[str, Any]) -> bool:
        """Renew the lease, and write the member key unless it is as it is to be."""

        def touch(left: Left) -> bool:
            self._renew(left)
            cluster = self.cluster
            member = cluster and cluster.get_member(self._name, fallback_to_leader=False)
            if member and member.session == self._session.id and deep_compare(data, member.data):
                return True
            value = json.dumps(data, separators=(",", ":"))
            try:
                return self._put(self.member_path, value, left, self._session.id)
            except LeaseNotFoundError:
                self._session.id = None
                raise

        return self._tried("touch_member", touch)

    # The leader key.

    def take_leader(self) -> bool:
        """Write the leader key, whatever it is now."""

        def take(left: Left) -> bool:
            self._renew(left)
            return self._put(self.leader_path, self._name, left, self._session.id)

        return self._tried("take_leader", take)

    def attempt_to_acquire_leader(self) -> bool:
        """Create the leader key. Returns whether it is this node's."""

        def acquire(left: Left) -> bool:
            self._renew(left)
            try:
                return self._create_leader(left)
            except LeaseNotFoundError:
                _log.error("the lease has ended: trying again with a new one")
                self._session.id = None
                self._renew(left)
                return self._create_leader(left)

        is_ours = self._needed("attempt_to_acquire_leader", acquire)
        if not is_ours:
            _log.info("Could not take out TTL lock")
        return is_ours

    def _update_leader(self, leader: Leader) -> bool:
        def update(left: Left) -> bool:
            self._session.make_due()
            self._renew(left)
            lease = self._session.id
            if leader.session == lease:
                return True
            put = op.put(self.leader_path, self._name, lease=lease)
            creation = op.txn(when=[Key(self.leader_path).missing], then=[put])
            result = self._commit(left, Key(self.leader_path).value == self._name, put, creation)
            return bool(result) or bool(result.responses[0])

        return self._needed("update_leader", update)

    def _delete_leader(self, leader: Leader) -> bool:
        def delete(left: Left) -> bool:
            is_ours = Key(self.leader_path).value == self._name
            result = self._commit(left, is_ours, op.delete(self.leader_path), op.get(self.leader_path))
            return bool(result) or result.responses[0] is None

        return self._tried("delete_leader", delete)

    # The other keys.

    def initialize(self, create_new: bool = True, sysid: str = "") -> bool:
        """Write the key of the bootstrap; create it if it must not exist."""

        def initialize(left: Left) -> bool:
            if not create_new:
                return self._put(self.initialize_path, sysid, left)
            # Without a lease, a copy of it could not be told from that of another node: it is not sent twice.
            creation = self._client.txn().when(Key(self.initialize_path).missing)
            return bool(creation.then(op.put(self.initialize_path, sysid)).commit(timeout=left()))

        return self._tried("initialize", initialize)

    def cancel_initialization(self) -> bool:
        """Delete the key of the bootstrap."""

        def cancel(left: Left) -> bool:
            self._client.delete(self.initialize_path, timeout=left(), retry="always")
            return True

        return self._tried("cancel_initialization", cancel)

    def delete_cluster(self) -> bool:
        """Delete all keys of the cluster."""

        def delete(left: Left) -> bool:
            self._client.delete(prefix=self.client_path(""), timeout=left(), retry="always")
            return True

        return self._tried("delete_cluster", delete)

    def set_failover_value(self, value: str, version: Any = None) -> bool:
        """Write the failover key."""
        return bool(
            self._tried("set_failover_value", lambda left: self._put_at(self.failover_path, value, version, left))
        )

    def set_config_value(self, value: str, version: Any = None) -> bool:
        """Write the configuration of the cluster."""
        return bool(self._tried("set_config_value", lambda left: self._put_at(self.config_path, value, version, left)))

    def set_sync_state_value(self, value: str, version: Any = None) -> int | bool:
        """Write the sync key. Returns its new version, or False."""
        return (
            self._tried("set_sync_state_value", lambda left: self._put_at(self.sync_path, value, version, left))
            or False
        )

    def delete_sync_state(self, version: Any = None) -> bool:
        """Delete the sync key, if it has not changed since a version."""

        def delete(left: Left) -> bool:
            if version is None:
                self._client.delete(self.sync_path, timeout=left(), retry="always")
                return True
            is_same = Key(self.sync_path).mod_revision == int(version)
            result = self._commit(left, is_same, op.delete(self.sync_path), op.get(self.sync_path))
            return bool(result) or result.responses[0] is None

        return self._tried("delete_sync_state", delete)

    def set_history_value(self, value: str) -> bool:
        """Write the history of timelines."""
        return self._written(self.history_path, value)

    def _write_leader_optime(self, last_lsn: str) -> bool:
        return self._written(self.leader_optime_path, last_lsn)

    def _write_status(self, value: str) -> bool:
        return self._written(self.status_path, value)

    def _write_failsafe(self, value: str) -> bool:
        return self._written(self.failsafe_path, value)

    def _written(self, key: str, value: str) -> bool:
        """Write a key that Patroni writes beside another call, so within a part of the limit."""
        return self._tried(f"write of {key}", lambda left: self._put(key, value, left), _PART)
