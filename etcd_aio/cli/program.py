"""The table of verbs, and the run of one: parse, run in one event loop, end with an exit code.

SIGINT, SIGTERM and SIGHUP cancel the verb, which leaves its blocks: watches, locks and leases end on the server too.
"""

import asyncio
import gc
import logging
import os
import signal
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, Unpack

import click

from etcd_aio.base import start_task
from etcd_aio.cli.grammar import Invocation, VerbEntry, VerbGroup
from etcd_aio.cli.outcome import ExitCode, Failure
from etcd_aio.cli.session import Session, complain
from etcd_aio.cli.signals import INTERRUPTS, UNHEEDED, handled
from etcd_aio.errors import AuthenticationFailedError, ConfigError, EtcdError

if TYPE_CHECKING:
    from etcd_aio.config import ClientOptions

VERBS: Final = {
    "get": VerbEntry("kv:get", "Gets a key or a range of keys"),
    "put": VerbEntry("kv:put", "Puts a key"),
    "del": VerbEntry("kv:delete", "Deletes a key or a range of keys"),
    "txn": VerbEntry("txn:txn", "Runs several operations as one transaction"),
    "compaction": VerbEntry("kv:compaction", "Discards the history before a revision"),
    "watch": VerbEntry("watch:watch", "Follows the changes of keys"),
    "lease": VerbEntry("lease:GROUP", "Grants, renews, shows and revokes leases"),
    "alarm": VerbEntry("maintenance:ALARM", "Lists and disarms alarms"),
    "defrag": VerbEntry("maintenance:defrag", "Defragments the databases of members"),
    "endpoint": VerbEntry("endpoint:GROUP", "Shows the health, status and hashes of members"),
    "member": VerbEntry("member:GROUP", "Lists, adds, changes and removes members"),
    "move-leader": VerbEntry("maintenance:move_leader", "Transfers the leadership to another member"),
    "snapshot": VerbEntry(
        "maintenance:SNAPSHOT", "Saves the database of a member, and shows the status of the file; etcdutl restores it"
    ),
    "downgrade": VerbEntry("maintenance:DOWNGRADE", "Validates, starts and cancels a downgrade"),
    "lock": VerbEntry("lock:lock", "Acquires a lock, and runs a command under it"),
    "elect": VerbEntry("elect:elect", "Takes part in an election, or observes it"),
    "auth": VerbEntry("auth:AUTH", "Enables and disables authentication"),
    "user": VerbEntry("auth:USER", "Manages users"),
    "role": VerbEntry("auth:ROLE", "Manages roles"),
    "check": VerbEntry("check:GROUP", "Checks whether the cluster can sustain a load"),
    "health": VerbEntry("health:health", "Reports whether the cluster is healthy, by one line and by the exit code"),
    "top": VerbEntry("top:top", "Shows the members and their load, again and again"),
    "dump": VerbEntry("dump:dump", "Writes the keys of a prefix, at one revision, as lines of JSON"),
    "restore": VerbEntry("restore:restore", "Makes the keys of a prefix what a dump says"),
    "make-mirror": VerbEntry("mirror:make_mirror", "Copies a prefix to another cluster, and keeps the copy equal"),
    "fake": VerbEntry("fake:fake", "Serves a fake etcd, for tests in any language"),
    "context": VerbEntry("context:GROUP", "Keeps endpoints and credentials under names"),
    "completion": VerbEntry("completion:completion", "Prints the script that completes words in a shell"),
    "version": VerbEntry("version:version", "Shows the version"),
    "options": VerbEntry("version:options", "Lists the global flags"),
}
"""The verbs, in the order of `--help`."""


def program() -> VerbGroup:
    """The whole grammar."""
    return VerbGroup("etcd-aio", "The command line of etcd_aio: the verbs and flags of etcdctl.", VERBS)


def run(words: Sequence[str]) -> int:
    """Run the command of these words. Returns the exit code."""
    session = None
    try:
        invocation = _parsed(words)
        if invocation is not None:
            session = _session(invocation)
            gc.enable()
            asyncio.run(_interruptible(session, invocation))
        sys.stdout.flush()  # the help, which may not be written yet
    except (KeyboardInterrupt, asyncio.CancelledError) as error:
        return _code_of(error if session is None else session.interrupted)
    except Exception as error:
        code = _code_of(error)
        if isinstance(error, Failure) and error.signal == signal.SIGINT:
            _end_by_sigint(is_of_terminal=error.of_terminal)
        return code
    return ExitCode.OK


async def perform(words: Sequence[str], **options: "Unpack[ClientOptions]") -> int:
    """Run the command of these words in the running loop, without handlers of signals. Returns the exit code.

    Args:
        words: the words of the command line.
        options: for the clients that the command makes, such as the engine of a fake.
    """
    try:
        invocation = _parsed(words)
        if invocation is not None:
            await invocation.work(_session(invocation, options), invocation.words, **invocation.options)
    except Exception as error:  # what is no command's end is raised again
        return _code_of(error)
    return ExitCode.OK


def _code_of(error: BaseException) -> int:
    """The exit code for an error, whose line is printed.

    Raises:
        BaseException: the error, if it is none that a command may end with.
    """
    match error:
        case Failure():
            if error.text:
                complain(f"Error: {error.text}")
            return error.code
        case KeyboardInterrupt() | asyncio.CancelledError():
            return ExitCode.INTERRUPTED
        case EtcdError():
            complain(f"Error: {error}")
            if isinstance(error, ConfigError):
                return ExitCode.BAD_ARGUMENTS
            is_login = isinstance(error, AuthenticationFailedError)  # etcdctl logs in while it connects
            return ExitCode.BAD_CONNECTION if is_login else ExitCode.ERROR
        case BrokenPipeError():
            _forget_stdout()
            return ExitCode.OK
        case OSError():  # stdout cannot be written: the disk is full
            _forget_stdout()
            complain(f"Error: {error.strerror or error}")
            return ExitCode.IO
    raise error


def _parsed(words: Sequence[str]) -> Invocation | None:
    """The verb to run; None if its help was printed."""
    try:
        found = program().main(list(words), prog_name="etcd-aio", standalone_mode=False)
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message())
        return None
    except click.UsageError as error:
        raise Failure(ExitCode.ERROR, error.format_message()) from None
    except click.Abort:
        raise Failure(ExitCode.INTERRUPTED) from None
    return found if isinstance(found, Invocation) else None


def _session(invocation: Invocation, options: "ClientOptions | None" = None) -> Session:
    session = Session(invocation.flags, is_local=invocation.is_local, options=options)
    if session.connection.switch("debug"):
        logging.basicConfig(level=logging.DEBUG, stream=sys.stderr)
    session.warn_of_variables()
    return session


async def _interruptible(session: Session, invocation: Invocation) -> None:
    """Run the verb until it ends or a signal cancels it."""
    running = start_task(invocation.work(session, invocation.words, **invocation.options), name="etcd-aio")
    with handled(INTERRUPTS, lambda _: running.cancel()), handled(UNHEEDED, lambda _: None):
        await running


def _end_by_sigint(*, is_of_terminal: bool) -> None:
    """End by SIGINT, as the command has that was run: a script goes on if its interrupted command ends otherwise.

    Args:
        is_of_terminal: the key has signalled that command alone, so the script, in the group of this process, does not
            know yet.
    """
    sys.stdout.flush()
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    if is_of_terminal:
        os.killpg(os.getpgrp(), signal.SIGINT)
    os.kill(os.getpid(), signal.SIGINT)


def _forget_stdout() -> None:
    """Stdout cannot be written, and Python must not complain about it at its exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
