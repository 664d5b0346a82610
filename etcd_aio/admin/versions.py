"""Versions: which release runs at each endpoint, and which version the cluster has agreed on.

Knows: an RPC that tells the first, a document that tells the second. Never knows: HTTP, or what the releases can do.

The member's release is in its `Status`. The cluster's version is in no RPC that every release has, so it is read where
people and health checks read it too: `GET /version`, which members serve beside gRPC on the same port. It also has the
release, for clients without a user: newer members with authentication on tell their status only to users.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

from etcd_aio import methods, pb
from etcd_aio.aio import start_task
from etcd_aio.call_options import Timeout
from etcd_aio.deadline import time_left
from etcd_aio.errors import ClientUsageError, EtcdError, NoAvailableEndpointsError, OldClusterError, ServerError
from etcd_aio.types import EndpointVersions

if TYPE_CHECKING:
    from etcd_aio.error_handler import Invoker

Get: TypeAlias = Callable[[str, str], Awaitable[bytes]]
"""Reads a document, such as `/version`, from an endpoint."""

OLDEST: Final = (3, 4, 0)
"""The oldest release that this client supports: its RPCs are all the client cannot do without."""

_GET_TIMEOUT: Final = 2.0  # seconds; a port that serves no HTTP may also say nothing, and must not hold up the rest
_LONGEST_SHOWN: Final = 40


class Versions:
    """See above.

    Args:
        invoker: runs the calls.
        get: reads documents.
    """

    def __init__(self, invoker: "Invoker", get: Get) -> None:
        self._invoker = invoker
        self._get = get

    async def ask(self, timeout: Timeout) -> tuple[EndpointVersions, ...]:
        """Ask every endpoint at once; one that does not answer has its error. See `Client.versions`."""
        return await self._ask_all(timeout, with_cluster=True)

    async def reject_old(self, timeout: float) -> None:
        """Check that no member is older than `OLDEST`.

        Args:
            timeout: seconds; those who have not answered by then are not judged.

        Raises:
            OldClusterError: one is.
            NoAvailableEndpointsError: nobody has answered.
        """
        found = await self._ask_all(timeout, with_cluster=False)
        if not any(one.server for one in found):
            raise NoAvailableEndpointsError(errors={one.endpoint: one.error for one in found if one.error is not None})
        for one in found:
            if (0, 0, 0) < one.server_version < OLDEST:
                oldest = ".".join(map(str, OLDEST[:2]))
                raise OldClusterError(
                    f"endpoint {one.endpoint} runs etcd {one.server}; this client supports {oldest} and newer"
                )

    async def _ask_all(self, timeout: Timeout, *, with_cluster: bool) -> tuple[EndpointVersions, ...]:
        deadline = self._invoker.deadline(timeout, self._invoker.clock())
        tasks = [
            start_task(self._ask_one(name, deadline, with_cluster), name=f"etcd_aio versions {name}")
            for name in self._invoker.endpoints
        ]
        try:
            return tuple(await asyncio.gather(*tasks))
        finally:
            for task in tasks:
                task.cancel()
            await _ended(tasks)

    async def _ask_one(self, endpoint: str, deadline: float, with_cluster: bool) -> EndpointVersions:
        asked: Sequence[asyncio.Task[Document]] = ()
        if with_cluster:
            asked = [start_task(self._document(endpoint, deadline), name=f"etcd_aio /version {endpoint}")]
        try:
            status = await self._invoker.unary(
                methods.STATUS,
                pb.StatusRequest(),
                timeout=time_left(deadline, self._invoker.clock()),
                needs_leader=False,
                endpoint=endpoint,
            )
            return EndpointVersions(endpoint, status.version, (await asked[0]).cluster if asked else "")
        except ClientUsageError:
            raise
        except ServerError as error:  # newer releases tell their status only to users, and this document to everybody
            found = await (asked[0] if asked else self._document(endpoint, deadline))
            return EndpointVersions(endpoint, found.server, found.cluster, None if found.server else error)
        except EtcdError as error:
            return EndpointVersions(endpoint, error=error)
        finally:
            for task in asked:
                task.cancel()
            await _ended(asked)

    async def _document(self, endpoint: str, deadline: float) -> "Document":
        """What `/version` says; nothing if it cannot be had, which is nobody's fault."""
        try:
            async with asyncio.timeout_at(min(deadline, self._invoker.clock() + _GET_TIMEOUT)):
                return read_document(await self._get(endpoint, "/version"))
        except (OSError, UnicodeError, EtcdError):  # TimeoutError is one; the address need not serve HTTP at all
            return Document()


@dataclass(frozen=True, slots=True)
class Document:
    """What `/version` says.

    Attributes:
        server: the member's release; empty if it is not in there.
        cluster: the cluster's version; empty if it is not in there, or not decided yet.
    """

    server: str = ""
    cluster: str = ""


def read_document(raw: bytes) -> Document:
    """Read the document; what cannot be read says nothing."""
    try:
        answer: object = json.loads(raw)
    except (ValueError, RecursionError):
        return Document()
    if not isinstance(answer, dict):
        return Document()
    return Document(_word(answer.get("etcdserver")), _word(answer.get("etcdcluster")))


def _word(found: object) -> str:
    if not isinstance(found, str) or not found.isprintable() or len(found) > _LONGEST_SHOWN:
        return ""
    return "" if found == "not_decided" else found


async def _ended(tasks: Sequence["asyncio.Task[object]"]) -> None:
    """Wait for tasks that were cancelled, so that nobody hears of their errors later."""
    await asyncio.gather(*tasks, return_exceptions=True)
