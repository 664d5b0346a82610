"""The verbs of maintenance: alarms, defragmentation, snapshots, the leadership, downgrades."""

import time
from dataclasses import replace
from typing import Final, Literal

from etcd_aio import EtcdError, Header
from etcd_aio.base import go_duration
from etcd_aio.cli.arguments import exactly, member_of, only_file, only_word
from etcd_aio.cli.endpoint import endpoints_of, of_cluster
from etcd_aio.cli.grammar import Switch, VerbGroup, verb
from etcd_aio.cli.outcome import ExitCode, Failure, bad_arguments
from etcd_aio.cli.results import Done
from etcd_aio.cli.session import Session, endpoint_of
from etcd_aio.errors import UnknownEndpointError

_NO_VERSION: Final = "TARGET_VERSION not provided, or too many arguments"

_WRONG_HASH: Final = "the SHA-256 at the end of the file does not match: etcdutl will not restore it"
_NO_HASH: Final = "no SHA-256 is at the end of the file: it is no whole snapshot, and etcdutl will not restore it"

_LOCK_TIMEOUT: Final = 5.0  # seconds; etcdutl waits for ever

ALARM = VerbGroup("alarm", "Lists and disarms alarms")
SNAPSHOT = VerbGroup(
    "snapshot", "Saves the database of a member, and shows the status of the file; etcdutl restores it"
)
DOWNGRADE = VerbGroup("downgrade", "Validates, starts and cancels a downgrade")


@ALARM.verb("disarm", short="Disarms all alarms")
async def alarm_disarm(session: Session, words: tuple[str, ...]) -> None:
    """Disarms all alarms, whose cause must be removed first."""
    exactly(words, 0, "alarm disarm command accepts no arguments")
    result = await session.call(lambda client: client.maintenance.disarm())
    session.show(replace(result, header=Header()))  # of several calls; etcdctl shows none


@ALARM.verb("list", short="Lists all alarms")
async def alarm_list(session: Session, words: tuple[str, ...]) -> None:
    """Lists the alarms that are raised."""
    exactly(words, 0, "alarm list command accepts no arguments")
    session.show(await session.call(lambda client: client.maintenance.alarms()))


@verb("defrag", "", of_cluster())
async def defrag(session: Session, words: tuple[str, ...], *, cluster: bool) -> None:
    """Defragments the databases of endpoints, one after the other: each serves no requests meanwhile."""
    failures = 0
    for endpoint in await endpoints_of(session, cluster):
        async with session.client(endpoint) as client:
            began = time.perf_counter_ns()
            try:
                await client.maintenance.defragment(await endpoint_of(client))
            except EtcdError as error:
                took = go_duration(time.perf_counter_ns() - began)
                session.complain(f"Failed to defragment etcd member[{endpoint}]. took {took}. ({error})")
                failures += 1
            else:
                took = go_duration(time.perf_counter_ns() - began)
                session.line(f"Finished defragmenting etcd member[{endpoint}]. took {took}")
    if failures:
        raise Failure(ExitCode.ERROR)


@SNAPSHOT.verb("save", "<filename>", short="Saves the database of a member as a file")
async def snapshot_save(session: Session, words: tuple[str, ...]) -> None:
    """Saves the database of a member as a verified file. Without --command-timeout it may take any time."""
    path = only_file(words, "snapshot save expects one argument <filename>", ExitCode.INTERRUPTED)
    timeout = session.connection.timeout_or(None)
    async with session.client() as client:
        try:
            saved = await client.maintenance.save_snapshot(path, timeout=timeout)
        except (EtcdError, OSError) as error:
            raise Failure(ExitCode.INTERRUPTED, f"{error}") from None
    session.line(f"Snapshot saved at {path}")
    if saved.version:
        session.line(f"Server version {saved.version}")


@SNAPSHOT.verb(
    "status",
    "<filename>",
    Switch("--verify", help="fail unless the SHA-256 at the end of the file is there and right"),
    is_local=True,
    short="Shows the hash, revision and size of a snapshot file",
)
async def snapshot_status(session: Session, words: tuple[str, ...], *, verify: bool) -> None:
    """Shows the hash, revision, number of keys, size and version of a snapshot file, as etcdutl does.

    The file may also be the database of a data directory, which has no SHA-256 at its end. As with etcdutl, the exit
    code is 0 also if that of a snapshot is wrong: use --verify in scripts. To restore a snapshot, use etcdutl.
    """
    from etcd_aio import offline  # the other verbs do not need it

    path = only_file(words, "snapshot status requires exactly one argument")
    session.check_format()
    try:
        found = await offline.snapshot_status(path, lock_timeout=session.connection.timeout_or(_LOCK_TIMEOUT))
    except OSError as error:
        raise Failure(ExitCode.ERROR, f"{path}: {error.strerror or error}") from None
    session.show(found)
    problem = {True: "", False: _WRONG_HASH, None: _NO_HASH}[found.hash_matches]
    if verify and problem:
        raise Failure(ExitCode.ERROR, f"{path}: {problem}")
    if found.hash_matches is False:
        session.complain(f"Warning: {problem}")


@verb("move-leader", "<transferee-member-id>")
async def move_leader(session: Session, words: tuple[str, ...]) -> None:
    """Transfers the leadership to another member."""
    target = member_of(only_word(words, "move-leader command needs 1 argument"))
    async with session.client() as client:
        try:
            moved = await client.maintenance.move_leader(target)
        except UnknownEndpointError:
            raise bad_arguments(f"no leader endpoint given at {', '.join(client.endpoints)}") from None
    text = f"Leadership transferred from {moved.header.member_id:x} to {target:x}"
    session.show(Done(text, Header(), has_fields=False))  # that of another call; etcdctl shows none


async def _downgrade(session: Session, action: Literal["validate", "enable", "cancel"], version: str = "") -> None:
    result = await session.call(lambda client: client.maintenance.downgrade(action, version))
    text = f"Downgrade {action} success, cluster version {result.version}"
    session.show(Done(text, result.header, has_fields=False))


@DOWNGRADE.verb("validate", "<TARGET_VERSION>", short="Checks that the cluster can be downgraded")
async def downgrade_validate(session: Session, words: tuple[str, ...]) -> None:
    """Checks that the cluster can be downgraded to this version."""
    await _downgrade(session, "validate", only_word(words, _NO_VERSION))


@DOWNGRADE.verb("enable", "<TARGET_VERSION>", short="Starts a downgrade")
async def downgrade_enable(session: Session, words: tuple[str, ...]) -> None:
    """Starts a downgrade of the cluster to this version."""
    await _downgrade(session, "enable", only_word(words, _NO_VERSION))


@DOWNGRADE.verb("cancel", short="Cancels a downgrade")
async def downgrade_cancel(session: Session, words: tuple[str, ...]) -> None:
    """Cancels the downgrade that is going on."""
    await _downgrade(session, "cancel")
