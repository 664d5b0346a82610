"""What is public: one list, from which the interface file, the reference and the page about versions are checked.

Public is what these modules export, with the members of classes, but for what is internal.
"""

from typing import Final

PUBLIC: Final = {
    "etcd_aio.errors": "every error",
    "etcd_aio": "the client, results, options and the errors that are caught most",
    "etcd_aio.op": "operations of transactions",
    "etcd_aio.admin": "users, members, maintenance",
    "etcd_aio.lease": "results of single lease calls, leases for recipes",
    "etcd_aio.concurrency": "what locks, elections and sessions give, for annotations",
    "etcd_aio.once": "exactly-once writes",
    "etcd_aio.cache": "caches",
    "etcd_aio.recipes": "counters, barriers, queues, groups, schedules, Kubernetes",
    "etcd_aio.store": "ordered reads",
    "etcd_aio.views": "counters of ordered reads",
    "etcd_aio.backend": "what a store stands on",
    "etcd_aio.calls": "what recipes stand on",
    "etcd_aio.base": "tools for recipes",
    "etcd_aio.arguments": "checks of arguments",
    "etcd_aio.services": "registration and discovery of services",
    "etcd_aio.mirror": "mirrors",
    "etcd_aio.offline": "files of etcd without a server",
    "etcd_aio.kubernetes": "values of Kubernetes",
    "etcd_aio.services.naming": "etcd's own format of service entries",
    "etcd_aio.compat": "programs that use other clients",
    "etcd_aio.observing": "observers of calls",
    "etcd_aio.contrib.aiohttp": "applications of aiohttp",
    "etcd_aio.contrib.asgi": "applications of Starlette and other ASGI frameworks",
    "etcd_aio.contrib.fastapi": "applications of FastAPI",
    "etcd_aio.contrib.litestar": "applications of Litestar",
    "etcd_aio.contrib.quart": "applications of Quart",
    "etcd_aio.contrib.sanic": "applications of Sanic",
    "etcd_aio.contrib.web": "what the applications of all frameworks have",
    "etcd_aio.contrib.config": "live configuration",
    "etcd_aio.contrib.pydantic_settings": "settings of pydantic",
    "etcd_aio.contrib.discovery": "endpoints of a service",
    "etcd_aio.contrib.discovery.aiohttp": "endpoints for aiohttp",
    "etcd_aio.contrib.discovery.grpc": "endpoints for grpcio",
    "etcd_aio.contrib.discovery.httpx": "endpoints for httpx",
    "etcd_aio.contrib.otel": "OpenTelemetry",
    "etcd_aio.contrib.prometheus": "Prometheus",
    "etcd_aio.contrib.torch": "torchrun and torch.distributed",
    "etcd_aio.sync": "the client for code that blocks",
    "etcd_aio.sync.admin": "users, members, maintenance, for code that blocks",
    "etcd_aio.sync.calls": "what recipes stand on, for code that blocks",
    "etcd_aio.sync.lease": "leases, for code that blocks",
    "etcd_aio.sync.concurrency": "what locks, elections and sessions give, for code that blocks",
    "etcd_aio.sync.once": "exactly-once writes, for code that blocks",
    "etcd_aio.sync.cache": "caches, for code that blocks",
    "etcd_aio.sync.recipes": "counters, barriers, queues, groups, schedules, for code that blocks",
    "etcd_aio.sync.store": "ordered reads, for code that blocks",
    "etcd_aio.sync.services": "registration and discovery of services, for code that blocks",
    "etcd_aio.sync.services.naming": "etcd's own format of service entries, for code that blocks",
    "etcd_aio.sync.mirror": "mirrors, for code that blocks",
    "etcd_aio.sync.fake": "an etcd in memory, for code that blocks",
    "etcd_aio.fake": "an etcd in memory",
    "etcd_aio.fake.time": "event loops in virtual time",
    "etcd_aio.testing": "real etcd servers for tests",
    "pytest_etcd_aio": "the types that the fixtures give",
}
"""The public modules, and what each is for. A name that several of them export belongs to the first."""


def _of(owner: str, names: str) -> set[str]:
    return {f"{owner}.{name}" for name in names.split()}


_OPERATIONS: Final = ("Delete", "Get", "Put", "Range", "Txn")
_SENDING: Final = ("extent", "has_endless_delete", "message", "method", "result")  # what sends an operation needs them

INTERNAL: Final = frozenset(
    _of("etcd_aio.errors", "AttemptFailure LocalReason RetryHint printable sanitize server_error with_history")
    | _of("etcd_aio.Leases", "block used_guard used_pool")
    | _of("etcd_aio.concurrency", "HoldOptions Holding OwnKey")
    | _of("etcd_aio.observing", "ObservedCall ObserverGroup with_defaults")
    | _of("etcd_aio.recipes", "StmCall")
    | _of("etcd_aio.services", "JSONValue KeptEntry")
    | _of(
        "etcd_aio.base",
        "ATTEMPT_SECONDS Blocking CANCELLED_SECONDS Log REMEMBERED Unwinding User as_etcd_error check_asyncio"
        " check_loop check_timeout current_user go_duration in_thread key_space_of log_for now repeat_unanswered"
        " resolve start_timer_at user_name wake when_constructed",
    )
    | _of("etcd_aio.admin", "Versions")
    | _of("etcd_aio.fake", "Fault Network")
    | _of("etcd_aio.calls", "check_store")
    | _of("etcd_aio.lease.LeasePool", "aclose closing_error drop_idle ended lent returned")
    | _of("etcd_aio.lease", "BACKOFF Guard LeaseKeeper MakeGuardClient OnDoubt OnEnd OnLoss")
    | _of("etcd_aio.backend", "ClientBackend")
    | {f"etcd_aio.op.{kind}Op.{name}" for kind in _OPERATIONS for name in _SENDING}
    | _of("etcd_aio.op", "checked_compares checked_operations checked_put")
    | _of("etcd_aio.Compare", "message")
    | _of("etcd_aio.TLS", "ask_key_password")
    | _of("etcd_aio.views", "OrderedView PrefixView")
    | _of(
        "etcd_aio.arguments",
        "MIN_INT64 cancels_block check_async_function check_awaitable check_blocking_function checked_margin"
        " is_encodable join_host_port one_of parse_word split_host_port",
    )
    | _of("etcd_aio.contrib.discovery.grpc", "State")
    | _of("etcd_aio.contrib.discovery.httpx", "logger")
    | _of("etcd_aio.contrib.sanic", "AnySanic")
)
"""Exported, or a member of a public class, for other packages of the library; the documentation has none of these."""
