"""The release of every member, and the version that the cluster has agreed on.

A member's release is in its `Status`. The cluster's version is in no RPC that every release has, so it is read from
`GET /version`, which members serve beside gRPC on the same port. That document also has the release, for clients
without a user: with authentication on, newer members answer `Status` only to users.
"""

import asyncio
import json
from typing import TYPE_CHECKING, Final

from etcd_aio.admin.status import ask_endpoints, status_of
from etcd_aio.base.aio import start_task
from etcd_aio.base.call_options import Timeout
from etcd_aio.base.deadline import time_left
from etcd_aio.dataclass import dataclass
from etcd_aio.errors import ClientUsageError, EtcdError, NoAvailableEndpointsError, OldClusterError, ServerError
from etcd_aio.types import EndpointVersions

if TYPE_CHECKING:
    from etcd_aio.admin.metrics import Get
    from etcd_aio.error_handler import Invoker

OLDEST: Final = (3, 4, 0)
"""The oldest release that this client supports: it has every RPC that the client needs."""

_GET_TIMEOUT: Final = 2.0  # seconds; a port that does not serve HTTP may be silent, and must not delay other answers
_LONGEST_SHOWN: Final = 40


class Versions:
    """Asks every endpoint for its versions.

    Args:
        invoker: runs the calls.
        get: reads documents over HTTP.
    """

    def __init__(self, invoker: "Invoker", get: "Get") -> None:
        self._invoker = invoker
        self._get = get

    async def ask(self, timeout: Timeout) -> tuple[EndpointVersions, ...]:
        """Ask every endpoint at once; an endpoint that does not answer has an error. See `Client.versions`."""
        return await self._ask_all(timeout, with_cluster=True)

    async def reject_old(self, timeout: float) -> None:
        """Check that no member is older than `OLDEST`.

        Args:
            timeout: seconds; endpoints that have not answered by then are not checked.

        Raises:
            OldClusterError: a member is older.
            NoAvailableEndpointsError: no endpoint has answered.
        """
        found = await self._ask_all(timeout, with_cluster=False)
        if not any(versions.server for versions in found):
            errors = {versions.endpoint: versions.error for versions in found if versions.error is not None}
            raise NoAvailableEndpointsError(errors=errors)
        for versions in found:
            if (0, 0, 0) < versions.server_version < OLDEST:
                oldest = ".".join(map(str, OLDEST[:2]))
                raise OldClusterError(
                    f"endpoint {versions.endpoint} runs etcd {versions.server}; this client supports {oldest} and newer"
                )

    async def _ask_all(self, timeout: Timeout, *, with_cluster: bool) -> tuple[EndpointVersions, ...]:
        deadline = self._invoker.deadline(timeout, self._invoker.clock())
        answers = await ask_endpoints(
            self._invoker.endpoints, lambda endpoint: self._ask(endpoint, deadline, with_cluster), name="versions"
        )
        return tuple(answers.values())

    async def _ask(self, endpoint: str, deadline: float, with_cluster: bool) -> EndpointVersions:
        reading: asyncio.Task[VersionDocument] | None = None
        if with_cluster:
            reading = start_task(self._read_document(endpoint, deadline), name=f"etcd_aio /version {endpoint}")
        try:
            status = await status_of(self._invoker, endpoint, time_left(deadline, self._invoker.clock()))
            return EndpointVersions(endpoint, status.version, "" if reading is None else (await reading).cluster)
        except ClientUsageError:
            raise
        except ServerError as error:  # newer members answer only to users, but serve the document to all
            document = await (reading or self._read_document(endpoint, deadline))
            return EndpointVersions(endpoint, document.server, document.cluster, None if document.server else error)
        except EtcdError as error:
            return EndpointVersions(endpoint, error=error)
        finally:
            if reading is not None:
                reading.cancel()
                await asyncio.gather(reading, return_exceptions=True)

    async def _read_document(self, endpoint: str, deadline: float) -> "VersionDocument":
        """The document `/version`; an empty one if it cannot be read, which is not an error."""
        try:
            async with asyncio.timeout_at(min(deadline, self._invoker.clock() + _GET_TIMEOUT)):
                return read_document(await self._get(endpoint, "/version"))
        except (OSError, UnicodeError, EtcdError):  # TimeoutError is an OSError; the endpoint need not serve HTTP
            return VersionDocument()


@dataclass(frozen=True, slots=True)
class VersionDocument:
    """The document `/version`.

    Attributes:
        server: the member's release; empty if unknown.
        cluster: the cluster's version; empty if unknown, or not decided yet.
    """

    server: str = ""
    cluster: str = ""


def read_document(raw: bytes) -> VersionDocument:
    """Parse the document; an attribute that cannot be parsed is empty."""
    try:
        answer: object = json.loads(raw)
    except (ValueError, RecursionError):
        return VersionDocument()
    if not isinstance(answer, dict):
        return VersionDocument()
    return VersionDocument(_word(answer.get("etcdserver")), _word(answer.get("etcdcluster")))


def _word(found: object) -> str:
    if not isinstance(found, str) or not found.isprintable() or len(found) > _LONGEST_SHOWN:
        return ""
    return "" if found == "not_decided" else found
