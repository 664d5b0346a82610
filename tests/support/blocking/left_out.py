"""The tests that do not run through `etcd_aio.sync`, and why."""

from collections.abc import Mapping
from typing import Final

import pytest

_NO_CLIENT: Final = "no client of the test's own: commands, servers, proxies, or programs in other processes"
_TRANSPORT: Final = "a contract of engines and connections, which no client uses in it"
_PROGRAM: Final = "the test of a program or of an import, which has its own counterpart for blocking code"
_BLOCKING: Final = "it tests the blocking client itself"
_TURNS: Final = "it counts turns of the loop, or does several things in one turn of it"
_ORDER: Final = "its tasks start calls in an order; threads have none"
_CANCEL: Final = "a loss cancels a task of asyncio; blocking code has `on_lost` and `check()`"
_WORK: Final = "the work is a task that is cancelled; of blocking code it is a function, which ends by itself"
_TASKS: Final = "it looks at tasks, or at the loop, of the asyncio client"
_INTERNALS: Final = "it reaches into the asyncio client"
_STALL: Final = "it blocks the loop that the asyncio client runs in"
_TEXT: Final = "it compares a text that names `async with` or tasks, or the logger of a callback"
_ONE_OBJECT: Final = "two facades stand for one object, and the test compares by identity"
_OTHER_LOOP: Final = "a client of asyncio belongs to one loop; a blocking one to any thread"
_ADAPTED: Final = "the adapters make a blocking function of an asynchronous one, so that none gets there"
_PEER: Final = (
    "its peer is in the loop of the test, and the client in another: the peer is reset in the midst of a write"
)
_DROPPED: Final = "it drops what is not closed; tests/unit/portal tests that of facades"

LEFT_OUT: Final[Mapping[str, str]] = {
    "test_accelerated": _NO_CLIENT,
    "test_cache::test_a_faulty_on_error_does_not_stop_the_cache": _TEXT,
    "test_cache::test_a_revision_of_very_many_events_is_seen_at_once": _TURNS,
    "test_cache::test_a_store_that_was_replaced_is_loaded_anew": _TURNS,
    "test_cache::test_many_callers_share_two_probes": _TURNS,
    "test_cache::test_reads_wait_while_the_keys_are_loaded": _TURNS,
    "test_cache::test_the_cache_is_exact_at_its_revision_at_any_time": _TURNS,
    "test_cache_cancellation": _TURNS,
    "test_cache_troubles::test_a_cancelled_task_of_its_own_ends_it": _TASKS,
    "test_cache_troubles::test_a_read_falls_back_to_the_server_while_the_keys_are_loaded": _INTERNALS,
    "test_cache_troubles::test_a_store_that_is_found_to_be_another_one_while_the_watch_is_resumed": _INTERNALS,
    "test_cache_troubles::test_closing_while_it_loads": _TURNS,
    "test_cancellation": _TASKS,
    "test_cli": _NO_CLIENT,
    "test_cli_etcdctl": _NO_CLIENT,
    "test_cli_terminal": _NO_CLIENT,
    "test_codec": _TRANSPORT,
    "test_election_cancellation": _TURNS,
    "test_election_faults::test_one_leader_after_an_outage": _WORK,
    "test_election_faults::test_work_has_ended_before_the_next_leader_begins": _WORK,
    "test_elections::test_a_leader_is_told_at_once_of_a_key_that_is_deleted": _TASKS,
    "test_elections::test_a_leadership_that_is_not_resumed_is_left_as_it_was": _TURNS,
    "test_elections::test_entering_an_election_itself_says_what_to_enter": _TEXT,
    "test_elections::test_etcd_18163_a_candidate_that_only_waits_is_never_told": _INTERNALS,
    "test_elections::test_proclamations_of_several_tasks_take_turns": _INTERNALS,
    "test_elections::test_run_after_a_loss_that_a_task_group_has_found_leads_again": _WORK,
    "test_elections::test_run_after_a_loss_waits_for_the_work_and_leads_again": _WORK,
    "test_elections::test_run_cancelled_ends_the_work_and_resigns": _WORK,
    "test_elections::test_run_does_not_outlast_its_client": _WORK,
    "test_elections::test_run_raises_what_the_work_raises_and_resigns": _WORK,
    "test_elections::test_work_that_does_not_end_is_reported": _WORK,
    "test_every_error::test_a_leader_that_loses_its_followers": _INTERNALS,
    "test_every_error::test_a_token_older_than_the_users": _INTERNALS,
    "test_every_error::test_members_that_cannot_be_right": _INTERNALS,
    "test_every_error::test_requests_that_cannot_be_right": _INTERNALS,
    "test_every_error::test_users_and_roles": _INTERNALS,
    "test_every_error::test_watches_that_cannot_be_right": _INTERNALS,
    "test_every_rpc::test_what_an_old_server_lacks_is_named_with_the_release_that_has_it": _INTERNALS,
    "test_fake_command": _NO_CLIENT,
    "test_fake_etcdctl": _NO_CLIENT,
    "test_fake_go": _NO_CLIENT,
    "test_fake_isolated": _NO_CLIENT,
    "test_fake_served": _NO_CLIENT,
    "test_fake_truth": _NO_CLIENT,
    "test_follow::test_every_step_is_cancelled_at_every_await": _TURNS,
    "test_frozen_holders": _NO_CLIENT,
    "test_gateway::test_range_stream_is_replaced_by_pages_and_said_to_be_lacking": _INTERNALS,
    "test_http2_cuts": _TRANSPORT,
    "test_interrupt": _PROGRAM,
    "test_layer_cancellation": _TURNS,
    "test_leases::test_a_stalled_loop_is_told_in_the_log": _STALL,
    "test_leases::test_grants_that_are_cancelled_leave_no_lease": _TURNS,
    "test_lifetime::test_use_from_another_loop_fails_at_once": _OTHER_LOOP,
    "test_locks::test_a_release_of_a_lost_lock_raises_and_lets_a_cancellation_go_on": _CANCEL,
    "test_locks::test_after_a_stop_of_the_loop_all_of_100_holders_find_themselves_lost_and_no_fenced_write_is_applied": _STALL,  # noqa: E501
    "test_locks::test_cancelled_at_every_turn_of_the_loop_and_nothing_stays": _TURNS,
    "test_locks::test_closing_within_the_block_is_not_cut_short": _CANCEL,
    "test_locks::test_is_lost_is_right_in_another_thread_while_the_loop_is_blocked": _STALL,
    "test_locks::test_lost_tells_of_a_release_too": _TURNS,
    "test_locks::test_the_first_acquisition_of_a_client_is_cancelled_at_every_turn": _TURNS,
    "test_locks::test_waiters_of_every_kind_are_cancelled_at_every_turn": _TURNS,
    "test_mirrors::test_a_closed_client_ends_it": _TURNS,
    "test_namespaces::test_long_results_leave_the_loop_to_others": _STALL,
    "test_naming::test_a_blocked_loop_does_not_hide_the_loss": _STALL,
    "test_naming::test_endpoints_are_read_again_after_each_change_and_no_other_time": _ONE_OBJECT,
    "test_once::test_a_lost_lease_of_ids_is_not_told_as_one_of_the_write": _ONE_OBJECT,
    "test_once::test_one_slot_serves_all_in_the_order_of_the_calls": _ORDER,
    "test_once::test_the_first_write_and_the_close_are_cancelled_at_every_await": _TURNS,
    "test_optimistic::test_a_list_over_a_compaction_that_another_member_has_not_made_yet": _INTERNALS,
    "test_peer_cost": _TRANSPORT,
    "test_queues::test_a_full_store_refuses_puts_and_serves_takes": _ORDER,
    "test_recipe_matrix::test_a_full_store_refuses_what_adds_and_what_was_begun_is_ended": _INTERNALS,
    "test_renewal": _INTERNALS,
    "test_rwlocks::test_entering_a_read_write_lock_itself_says_what_to_enter": _TEXT,
    "test_semaphores::test_a_holder_that_cannot_wake_the_next_waiter_stops_to_try_when_the_client_is_closed": _TASKS,
    "test_sessions::test_run_ends_with_its_session": _WORK,
    "test_sessions::test_ten_tasks_of_one_session_exclude_each_other": _ORDER,
    "test_sessions::test_try_acquire_waits_for_no_other_task_of_the_session": _ORDER,
    "test_single_key::test_an_update_by_an_async_function_is_refused": _ADAPTED,
    "test_startup": _PROGRAM,
    "test_streams": _INTERNALS,
    "test_sync_clients": _BLOCKING,
    "test_sync_exit": _BLOCKING,
    "test_sync_fork": _BLOCKING,
    "test_sync_interrupt": _BLOCKING,
    "test_testing_cluster": _NO_CLIENT,
    "test_testing_ports": _NO_CLIENT,
    "test_testing_proxy": _NO_CLIENT,
    "test_testing_server": _NO_CLIENT,
    "test_texts_of_peers::test_names_in_dns": _TRANSPORT,
    "test_tracebacks": _PROGRAM,
    "test_transport": _TRANSPORT,
    "test_transport_cancellation": _TRANSPORT,
    "test_transport_dialling": _TRANSPORT,
    "test_transport_faults": _TRANSPORT,
    "test_transport_time": _TRANSPORT,
    "test_watch::test_a_watch_that_is_dropped_leaves_the_server": _DROPPED,
    "test_watch::test_no_value_is_told_to_anybody": _INTERNALS,
    "test_watch::test_what_cannot_be_used_says_so": _TURNS,
    "test_wrong_endpoints::test_a_server_of_pages_is_another_service": _PEER,
}
"""The reasons, by module, and by module and test."""

FROM_CONTRACTS: Final = frozenset(
    {
        "test_gateway::test_a_watch_ends_by_a_message_that_cannot_be_read",
        "test_tls::test_a_context_of_the_users_stays_as_it_is",
    }
)
"""Tests with a client, in contracts that are about engines else. Integration tests have modules of these names, too."""


def reason_of(item: pytest.Item) -> str | None:
    """Why a test is left out, if it is."""
    test = getattr(item, "originalname", item.name)
    if item.path.parent.name == "contract" and item.path.stem in ("test_gateway", "test_tls"):
        return None if f"{item.path.stem}::{test}" in FROM_CONTRACTS else _TRANSPORT
    return LEFT_OUT.get(f"{item.path.stem}::{test}") or LEFT_OUT.get(item.path.stem)
