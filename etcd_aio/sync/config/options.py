"""ClientOptions, for blocking code.

Made by `python -m release.facade --write` from `etcd_aio.config.options`: do not edit.
"""

import ssl
from collections.abc import Callable, Sequence
from typing import TypedDict

from etcd_aio.arguments import KeyLike
from etcd_aio.balancer import Choice, PolicyName
from etcd_aio.base import RetryMode
from etcd_aio.config import TLS
from etcd_aio.error_handler import RetryPolicy
from etcd_aio.observing import Observer
from etcd_aio.transport import EngineFactory, EngineName


class ClientOptions(TypedDict, total=False):
    """The options of `Client` besides its endpoints."""

    tls: TLS | ssl.SSLContext | None
    auth: tuple[str, str] | None
    token: str | Callable[[], str] | None
    allow_insecure_auth: bool
    timeout: float | None
    connect_timeout: float
    policy: PolicyName | Choice
    engine: EngineName | EngineFactory
    retry: RetryMode
    retry_policy: RetryPolicy | None
    require_leader: bool
    keepalive_time: float
    keepalive_timeout: float
    max_send_bytes: int
    max_receive_bytes: int
    hedge_after: float | None
    auto_sync: float | None
    discovery_srv_name: str
    reject_old_cluster: bool
    fail_fast: bool
    proxy: str | None
    namespace: KeyLike | None
    observers: Sequence[Observer]
    name: str
    allow_in_loop: bool
