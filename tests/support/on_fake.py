"""`--on-fake`: the integration tests that share a server run on a fake instead, a new one for each test.

Clients of the tests connect to the fake, and to real servers if a test starts some besides. Left out are tests that
start a server of their own, for its signals, disks, TLS or users; and those in `LEFT_OUT`.

`--on-served-fake`: all share one fake, which is served over sockets, so that other programs and proxies reach it too.
"""

from collections.abc import Iterator, Mapping
from contextlib import AsyncExitStack, contextmanager
from types import TracebackType
from typing import Final, Self

import pytest

from etcd_aio import Client
from etcd_aio.fake import FakeEtcd
from etcd_aio.testing import find_etcd
from etcd_aio.transport import Connection, ConnectionOwner, Engine, Target, TransportOptions, create_engine

HOST: Final = "fake1"

_PROXY: Final = "a proxy stands between its client and the server, and the fake has no socket here"
_PROCESS: Final = "another process calls the server, and the fake has no socket here"
_NATIVE: Final = "it looks at what the native engine dials"
_DOWNGRADE: Final = "the fake does not imitate downgrades"
_SERVICES: Final = "it calls etcd's own services for locks and elections, which the fake does not imitate"
_JSON: Final = "it speaks to etcd's JSON gateway, and the fake has none"
_OBJECTS: Final = "it counts the objects of this process, and the fake keeps its calls in it"
_ADDRESS: Final = "the API of another client takes an address, and the fake has no socket here"

_NEEDS_SOCKETS: Final = frozenset({_ADDRESS, _PROXY, _PROCESS, _NATIVE})
LEFT_OUT: Final[Mapping[str, str]] = {
    "test_bad_input": _PROXY,
    "test_cancellation": _PROXY,
    "test_compat_aetcd": _ADDRESS,
    "test_compat_etcd3": _ADDRESS,
    "test_compat_etcd3gw": _ADDRESS,
    "test_discovery_interop": _PROCESS,
    "test_election_interop": _PROCESS,
    "test_election_interop::test_all_kinds_of_candidates_lead_in_turn": _SERVICES,
    "test_election_interop::test_etcd_9921_our_key_taken_by_the_service_ends_the_block": _SERVICES,
    "test_elections::test_a_proclamation_whose_answer_is_lost_is_applied_once": _PROXY,
    "test_elections::test_etcd_22082_a_resignation_that_is_repeated_spares_the_next_leader": _PROXY,
    "test_elections::test_etcd_22123_and_22124_resigning_without_an_answer_goes_on": _PROXY,
    "test_elections::test_observers_follow_over_cut_connections": _PROXY,
    "test_elections::test_run_does_not_outlast_its_client": _PROXY,
    "test_every_error::test_downgrades_that_cannot_be_right": _DOWNGRADE,
    "test_failover": _PROXY,
    "test_follow::test_an_outage_is_raised_and_the_next_step_goes_on": _PROXY,
    "test_gateway": _JSON,
    "test_leases::test_what_is_granted_after_an_outage_longer_than_the_ttl_is_not_lost": _PROXY,
    "test_lifetime::test_a_client_made_before_a_fork_fails_at_once_in_the_child": _PROCESS,
    "test_lifetime::test_a_lock_held_across_a_fork_is_that_of_the_parent": _PROCESS,
    "test_lifetime::test_a_thousand_calls_leave_nothing_behind": _OBJECTS,
    "test_lifetime::test_calls_under_way_end_with_the_close": _PROXY,
    "test_lifetime::test_exit_leaves_no_task_and_no_warning": _PROCESS,
    "test_lock_interop": _PROCESS,
    "test_lock_interop::test_all_kinds_hold_in_turn": _SERVICES,
    "test_locks::test_a_fenced_write_whose_repetition_is_refused_may_have_been_applied": _PROXY,
    "test_maintenance::test_a_downgrade_is_checked_begun_and_cancelled": _DOWNGRADE,
    "test_naming::test_a_registration_is_what_go_writes": _PROCESS,
    "test_once::test_a_write_that_was_never_sent_was_not_applied": _PROXY,
    "test_once::test_an_outage_longer_than_the_ttl": _PROXY,
    "test_once::test_closing_the_client_does_not_wait_for_a_cluster_that_is_silent": _PROXY,
    "test_once::test_every_byte_of_the_answer_is_cut": _PROXY,
    "test_once::test_the_deadline_passes_and_settle_tells": _PROXY,
    "test_once::test_what_is_not_settled_in_time_is_logged_with_the_keys_of_its_slots": _PROXY,
    "test_once::test_without_a_slot_the_same_cuts_apply_writes_twice": _PROXY,
    "test_optimistic::test_every_byte_of_the_answer_cut": _PROXY,
    "test_optimistic::test_every_byte_of_the_answer_cut_while_others_write": _PROXY,
    "test_proxies": _PROXY,
    "test_proxies::test_the_gateway_goes_through_a_proxy_with_all_its_sockets": _JSON,
    "test_queues::test_go_and_ours_put_into_one_queue_and_take_from_it": _PROCESS,
    "test_recipes::test_barriers_of_go_and_ours_hold_each_other_up": _PROCESS,
    "test_recipes::test_double_barriers_of_go_and_ours_are_one": _PROCESS,
    "test_semaphores::test_a_holder_that_cannot_wake_the_next_waiter_stops_to_try_when_the_client_is_closed": _PROXY,
    "test_single_key::test_a_deletion_while_no_server_is_reached_ends_the_wait": _PROXY,
    "test_single_key::test_an_update_in_doubt_says_so": _PROXY,
    "test_tls::test_a_plaintext_server_gets_nothing_from_a_tls_endpoint": _NATIVE,
    "test_watch::test_a_silent_member_does_not_hold_entering": _PROXY,
    "test_watch_proxy": _PROXY,
    "test_work_queues::test_a_worker_that_was_stopped_for_three_ttls_cannot_complete": _PROCESS,
}
"""The reasons of what is left out besides: of whole files, and of tests."""


def runs_on_fake(item: pytest.Item) -> bool:
    """Whether an integration test runs with `--on-fake`."""
    test = getattr(item, "originalname", item.name)
    reason = LEFT_OUT.get(f"{item.path.stem}::{test}") or LEFT_OUT.get(item.path.stem)
    if item.config.getoption("on_fake") == "sockets" and reason in _NEEDS_SOCKETS:
        reason = None
    return "shared_server" in getattr(item, "fixturenames", ()) and reason is None


class ServedFake(FakeEtcd):
    """Stands for the shared server, and is served over sockets.

    Attributes:
        endpoint: its endpoint.
        version: its version.
        binary: an etcd of that version, whose proxy may stand before the fake.
    """

    def __init__(self) -> None:
        self.binary = find_etcd()
        self.version = self.binary.version
        super().__init__(self.version)
        self.endpoint = ""
        self._served = AsyncExitStack()

    async def __aenter__(self) -> Self:
        await super().__aenter__()
        self.endpoint = await self._served.enter_async_context(self.serve())
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self._served.aclose()
        await super().__aexit__(exc_type, exc, traceback)


class FakeServer:
    """Stands for the shared server.

    Attributes:
        fake: the fake of the test that runs.
    """

    endpoint: Final = f"http://{HOST}:2379"
    endpoints: Final = (endpoint,)

    def __init__(self) -> None:
        self.version = find_etcd().version
        self.fake = FakeEtcd(self.version)

    @contextmanager
    def renewed(self) -> Iterator[None]:
        """A new fake for a test, to which clients connect by default."""
        defaults = Client.__init__.__kwdefaults__
        assert defaults is not None
        self.fake = FakeEtcd(self.version)
        with pytest.MonkeyPatch.context() as patch:
            patch.setitem(defaults, "engine", lambda options: _EitherEngine(self.fake, options))
            yield


class _EitherEngine:
    """Connects to the fake by its name, and to anything else by a socket."""

    def __init__(self, fake: FakeEtcd, options: TransportOptions) -> None:
        self._fake = fake.engine(options)
        self._native = create_engine("native", options)

    def _of(self, target: Target) -> Engine:
        return self._fake if target.host == HOST else self._native

    async def connect(self, target: Target, owner: ConnectionOwner) -> Connection:
        return await self._of(target).connect(target, owner)

    async def http_get(self, target: Target, path: str) -> bytes:
        return await self._of(target).http_get(target, path)
