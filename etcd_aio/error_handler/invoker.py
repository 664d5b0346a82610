"""Invoker: the door through which every unary call leaves the API.

Knows: the client's defaults and the metadata of a request. Never knows: what a request means (`api/` does), what
follows from a failed attempt (`call.py` and `verdict.py` do), or HTTP/2.
"""

import asyncio
import random as random_module
from collections.abc import Callable
from typing import Final, get_args

from etcd_aio import codec
from etcd_aio.balancer import Balancer, Metadata
from etcd_aio.deadline import deadline_after
from etcd_aio.error_handler.call import Call, CallContext
from etcd_aio.error_handler.identity import ClusterIdentity
from etcd_aio.error_handler.lifetime import Lifetime
from etcd_aio.error_handler.retry import RetryPolicy
from etcd_aio.errors import InvalidRequestError, RequestTooLargeError
from etcd_aio.methods import Method, Reply, Request
from etcd_aio.options import UNSET, RetryMode, Timeout

API_VERSION: Final = "3.7"  # the release whose .proto files this client was generated from

_RETRY_MODES: Final = get_args(RetryMode)


class Invoker:
    """Runs unary calls.

    Args:
        balancer: gives sub-connections.
        lifetime: says whether the client may be used.
        identity: the cluster that every answer must come from.
        policy: how calls are repeated.
        timeout: seconds a call may take if it does not say itself; None for no limit.
        retry: the retry mode of calls that do not say themselves.
        require_leader: whether calls that need a leader say so, and are refused at once by a member without one.
        max_send_bytes: largest request message.
        random: returns a number in [0, 1).
    """

    def __init__(
        self,
        balancer: Balancer,
        lifetime: Lifetime,
        identity: ClusterIdentity,
        *,
        policy: RetryPolicy,
        timeout: float | None,
        retry: RetryMode,
        require_leader: bool,
        max_send_bytes: int,
        random: Callable[[], float] = random_module.random,
    ) -> None:
        self._balancer = balancer
        self._lifetime = lifetime
        self._context = CallContext(balancer, lifetime, identity, policy, random)
        self._seconds = deadline_after(timeout, 0.0)
        self._retry: RetryMode = _checked(retry)
        self._max_send_bytes = max_send_bytes
        plain: Metadata = (("client-api-version", API_VERSION),)
        self._metadata: Metadata = plain
        self._metadata_with_leader: Metadata = (*plain, ("hasleader", "true")) if require_leader else plain

    async def unary(
        self,
        method: Method[Request, Reply],
        request: Request | bytes,
        *,
        timeout: Timeout = UNSET,
        retry: RetryMode | None = None,
        repeatable: bool | None = None,
        needs_leader: bool = True,
    ) -> Reply:
        """Run a call.

        Args:
            method: which RPC.
            request: its message, or the bytes of one.
            timeout: seconds for the whole call; None for no limit; `UNSET` for the client's default.
            retry: the retry mode; None for the client's default.
            repeatable: True if this very request only reads, whatever its method can do; False if it must not run
                twice; None for what its method says.
            needs_leader: the request cannot be served without a leader, so a member without one shall say so at once.

        Returns:
            What the method says that its reply is.

        Raises:
            EtcdError: whatever became of it; `attempts` and `maybe_applied` tell the story.

        Cancellation ends the attempt under way at once; a mutation that was sent may still be applied.
        """
        if self._lifetime.enter():
            self._balancer.start()
        payload = request if isinstance(request, bytes) else codec.encode(request)
        if len(payload) > self._max_send_bytes:
            text = f"the request has {len(payload)} bytes, more than max_send_bytes ({self._max_send_bytes})"
            raise RequestTooLargeError(text)
        now = asyncio.get_running_loop().time()
        deadline = now + self._seconds if timeout is UNSET else deadline_after(timeout, now)
        mode = self._retry if retry is None else _checked(retry)
        is_repeatable = method.repeatable if repeatable is None else repeatable
        call = Call(
            self._context,
            method,
            payload,
            self._metadata_with_leader if needs_leader else self._metadata,
            deadline,
            is_mutation=method.is_mutation and repeatable is not True,
            may_repeat=is_repeatable or mode == "always",
            may_retry=mode != "never",
        )
        return await call.run(now)


def _checked(mode: RetryMode) -> RetryMode:
    if mode not in _RETRY_MODES:
        raise InvalidRequestError(f"retry must be one of {', '.join(map(repr, _RETRY_MODES))}; got {mode!r}")
    return mode
