"""The verbs about endpoints. All endpoints are asked at once, so that a dead one does not delay the others."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import TypeVar

from etcd_aio import Client
from etcd_aio.base import go_duration
from etcd_aio.cli.grammar import Switch, VerbGroup, value
from etcd_aio.cli.outcome import ExitCode, Failure
from etcd_aio.cli.results import EndpointHealth, HashReport, HealthReport, OwnWord, StatusReport
from etcd_aio.cli.session import Session, endpoint_of
from etcd_aio.errors import EtcdError, PermissionDeniedError

_T = TypeVar("_T")

_ASKED = ("livez", "readyz")
_HEALTH_KEY = "health"  # the key of etcdctl's check; it need not exist

GROUP = VerbGroup("endpoint", "Shows the health, status and hashes of members")


def of_cluster() -> Switch:
    """The flag for the endpoints of all members."""
    return Switch("--cluster", help="all endpoints of the member list")


def verbose() -> Switch:
    """The flag for what members say of themselves."""
    return Switch("--verbose", help="what each member says of itself too, check by check: /livez and /readyz")


async def endpoints_of(session: Session, cluster: bool) -> tuple[str, ...]:
    """The endpoints that were given, with one for each address of a DNS name, or those of all members.

    Raises:
        EtcdError: the members could not be listed.
    """
    if not cluster:
        found = await asyncio.gather(*(_addresses_of(session, one) for one in session.connection.endpoints))
        return tuple(address for addresses in found for address in addresses)
    async with session.client() as client:
        members = (await client.cluster.members()).members
    return tuple(url for member in members for url in member.client_urls)


async def _addresses_of(session: Session, given: str) -> tuple[str, ...]:
    """The endpoints at the addresses of a DNS name; what was given, if it has none or is an endpoint itself."""
    client = session.client(given)
    if client.endpoints:
        return (given,)
    async with client:
        with suppress(EtcdError):  # the addresses may be known all the same
            await endpoint_of(client)
        return client.endpoints or (given,)


async def ask_all(
    session: Session, endpoints: Sequence[str], ask: Callable[[Client, str], Awaitable[_T]]
) -> list[tuple[str, _T | EtcdError]]:
    """Ask every endpoint with a client of its own; in the order of the endpoints."""

    async def one(endpoint: str) -> tuple[str, _T | EtcdError]:
        async with session.client(endpoint) as client:
            try:
                return endpoint, await ask(client, await endpoint_of(client))
            except EtcdError as error:
                return endpoint, error

    return await asyncio.gather(*map(one, endpoints))


@GROUP.verb("health", "", of_cluster(), verbose(), short="Checks the health of endpoints")
async def health(session: Session, words: tuple[str, ...], *, cluster: bool, verbose: bool) -> None:
    """Checks that each endpoint answers a read with quorum, and that there is no alarm."""
    rows = await health_of(session, await endpoints_of(session, cluster), with_words=verbose)
    session.show(HealthReport(rows))
    unhealthy = [row for row in rows if row.error]
    if session.is_simple:
        for row in unhealthy:
            session.complain(f"{row.endpoint} is unhealthy: failed to commit proposal: {row.error}")
    if unhealthy:
        raise Failure(ExitCode.ERROR, "unhealthy cluster")


async def health_of(
    session: Session, endpoints: Sequence[str], *, with_words: bool = False
) -> tuple[EndpointHealth, ...]:
    """Ask every endpoint whether it is healthy, and perhaps what its member says of itself."""
    answers, words = await asyncio.gather(
        ask_all(session, endpoints, _health), ask_all(session, endpoints if with_words else (), _own_words)
    )
    said = dict(words)
    return tuple(_row(endpoint, answer, said.get(endpoint, ())) for endpoint, answer in answers)


def _row(endpoint: str, answer: tuple[int, str] | EtcdError, words: tuple[OwnWord, ...] | EtcdError) -> EndpointHealth:
    said = _unknown(words) if isinstance(words, EtcdError) else words
    if isinstance(answer, EtcdError):
        return EndpointHealth(endpoint, is_healthy=False, took="", error=f"{answer}", words=said)
    took, error = answer
    return EndpointHealth(endpoint, is_healthy=not error, took=go_duration(took), error=error, words=said)


async def _own_words(client: Client, endpoint: str) -> tuple[OwnWord, ...]:
    """The checks that a member makes of itself."""
    answers = await asyncio.gather(
        client.maintenance.livez(endpoint), client.maintenance.readyz(endpoint), return_exceptions=True
    )
    words: list[OwnWord] = []
    for asked, answer in zip(_ASKED, answers, strict=True):
        if isinstance(answer, EtcdError):
            words.append(OwnWord(asked, None, answer.message))
        elif isinstance(answer, BaseException):
            raise answer
        else:
            words.append(OwnWord(asked, answer))
    return tuple(words)


def _unknown(error: EtcdError) -> tuple[OwnWord, ...]:
    return tuple(OwnWord(asked, None, error.message) for asked in _ASKED)


async def _health(client: Client, endpoint: str) -> tuple[int, str]:
    """The nanoseconds of a read, and what is wrong."""
    began = time.perf_counter_ns()
    error = ""
    try:
        await client.get(_HEALTH_KEY)
    except PermissionDeniedError:
        pass  # decided with quorum, too
    except EtcdError as reason:
        error = f"{reason}"
    took = time.perf_counter_ns() - began
    if error:
        return took, error
    try:
        alarms = (await client.maintenance.alarms()).alarms
    except EtcdError:
        return took, "Unable to fetch the alarm list"
    return took, f"Active Alarm(s): {' '.join(one.alarm.name for one in alarms)} " if alarms else ""


async def _report(
    session: Session,
    cluster: bool,
    what: str,
    ask: Callable[[Client, str], Awaitable[_T]],
    report: Callable[[tuple[tuple[str, _T], ...]], StatusReport | HashReport],
) -> None:
    """Show what each endpoint answers.

    Raises:
        Failure: some have not answered, which is complained about.
    """
    answers = await ask_all(session, await endpoints_of(session, cluster), ask)
    for endpoint, answer in answers:
        if isinstance(answer, EtcdError):
            session.complain(f"Failed to get the {what} of endpoint {endpoint} ({answer})")
    found = tuple((endpoint, answer) for endpoint, answer in answers if not isinstance(answer, EtcdError))
    session.show(report(found))
    if len(found) < len(answers):
        raise Failure(ExitCode.ERROR)


@GROUP.verb("status", "", of_cluster(), short="Shows the status of endpoints")
async def status(session: Session, words: tuple[str, ...], *, cluster: bool) -> None:
    """Shows the status of each endpoint."""
    await _report(session, cluster, "status", lambda client, one: client.maintenance.status(one), StatusReport)


@GROUP.verb(
    "hashkv",
    "",
    of_cluster(),
    value("--rev", kind=int, default=0, help="hash up to this revision; 0 for all"),
    short="Shows the hashes of the histories of endpoints",
)
async def hashkv(session: Session, words: tuple[str, ...], *, cluster: bool, rev: int) -> None:
    """Shows the hash of the keys and their history at each endpoint."""
    revision = max(0, rev)
    await _report(session, cluster, "hash", lambda client, one: client.maintenance.hash_kv(one, revision), HashReport)
