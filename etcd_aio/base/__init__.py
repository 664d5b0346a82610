"""Base: tools that all packages share, and that a recipe of your own needs besides the store.

Tasks and waiting: `start_task`, `start_background_task`, `start_timer`, `wait_until`, `Waiters`, `Latch`, `HandOver`,
`TaskCanceller`. Time: `deadline_after`, `time_left`, `NEVER`, `Backoff`, `Pauses`, `Contention`. Blocks: `AsyncBlock`,
`NotAwaitable`, `TwoPartClose`. Options of calls: `Timeout`, `UNSET`, `RetryMode`.
"""

from typing import TYPE_CHECKING

from etcd_aio.exports import late_names

if TYPE_CHECKING:
    from etcd_aio.base.aio import ATTEMPT_SECONDS as ATTEMPT_SECONDS
    from etcd_aio.base.aio import Latch as Latch
    from etcd_aio.base.aio import TaskCanceller as TaskCanceller
    from etcd_aio.base.aio import Waiters as Waiters
    from etcd_aio.base.aio import check_loop as check_loop
    from etcd_aio.base.aio import repeat_unanswered as repeat_unanswered
    from etcd_aio.base.aio import resolve as resolve
    from etcd_aio.base.aio import start_background_task as start_background_task
    from etcd_aio.base.aio import start_task as start_task
    from etcd_aio.base.aio import start_timer as start_timer
    from etcd_aio.base.aio import start_timer_at as start_timer_at
    from etcd_aio.base.aio import wait_until as wait_until
    from etcd_aio.base.aio import wake as wake
    from etcd_aio.base.backoff import Backoff as Backoff
    from etcd_aio.base.blocking import Blocking as Blocking
    from etcd_aio.base.blocking import check_asyncio as check_asyncio
    from etcd_aio.base.call_options import UNSET as UNSET
    from etcd_aio.base.call_options import RetryMode as RetryMode
    from etcd_aio.base.call_options import Timeout as Timeout
    from etcd_aio.base.closing import CANCELLED_SECONDS as CANCELLED_SECONDS
    from etcd_aio.base.closing import TwoPartClose as TwoPartClose
    from etcd_aio.base.closing import Unwinding as Unwinding
    from etcd_aio.base.contention import REMEMBERED as REMEMBERED
    from etcd_aio.base.contention import Contention as Contention
    from etcd_aio.base.deadline import NEVER as NEVER
    from etcd_aio.base.deadline import check_timeout as check_timeout
    from etcd_aio.base.deadline import deadline_after as deadline_after
    from etcd_aio.base.deadline import time_left as time_left
    from etcd_aio.base.durations import go_duration as go_duration
    from etcd_aio.base.hand_over import HandOver as HandOver
    from etcd_aio.base.key_space import KeySpace as KeySpace
    from etcd_aio.base.key_space import key_space_of as key_space_of
    from etcd_aio.base.logs import Log as Log
    from etcd_aio.base.logs import log_for as log_for
    from etcd_aio.base.not_awaitable import AsyncBlock as AsyncBlock
    from etcd_aio.base.not_awaitable import NotAwaitable as NotAwaitable
    from etcd_aio.base.pauses import PATIENT as PATIENT
    from etcd_aio.base.pauses import SOON as SOON
    from etcd_aio.base.pauses import STEADY as STEADY
    from etcd_aio.base.pauses import Pauses as Pauses
    from etcd_aio.base.reprs import when_constructed as when_constructed
    from etcd_aio.base.suspension import now as now
    from etcd_aio.base.threads import in_thread as in_thread
    from etcd_aio.base.unexpected import as_etcd_error as as_etcd_error
    from etcd_aio.base.user import User as User
    from etcd_aio.base.user import current_user as current_user
    from etcd_aio.base.user import user_name as user_name
else:
    _INTERNAL = (
        *("ATTEMPT_SECONDS", "Blocking", "CANCELLED_SECONDS", "Log", "REMEMBERED", "Unwinding", "as_etcd_error"),
        *("check_asyncio", "check_loop", "check_timeout", "go_duration", "in_thread", "key_space_of", "log_for"),
        *("now", "repeat_unanswered", "resolve", "User", "current_user", "start_timer_at", "user_name", "wake"),
        "when_constructed",
    )
    __getattr__, __dir__, __all__ = late_names(__name__, _INTERNAL)
