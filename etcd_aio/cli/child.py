"""A command that runs only while something is held: a lock, or a leadership.

The child inherits stdin, stdout and stderr, and gets the signals that this process gets. When what is held is lost,
the child's process group is terminated; it is killed after a grace. On Linux the child also gets SIGTERM when this
process is killed.
"""

import asyncio
import os
import signal
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from typing import Final

from etcd_aio.aio import start_task
from etcd_aio.cli.outcome import ExitCode, Failure

_FORWARDED: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_SET_PARENT_DEATH_SIGNAL: Final = 1  # of Linux's prctl
_SIGNALLED: Final = 128  # as shells, which add the number of the signal


async def _until(lost: Callable[[], Awaitable[object]]) -> None:
    await lost()


async def run_while_held(
    command: Sequence[str],
    environ: Mapping[str, str],
    lost: Callable[[], Awaitable[object]],
    *,
    on_lost: str = "term",
    grace: float = 5.0,
) -> None:
    """Run a command until it ends, or what it needs is lost.

    Args:
        command: the words of the command.
        environ: variables that it gets besides those of this process.
        lost: waits until what is held is lost.
        on_lost: what is done to the child then: "term", "kill" or "ignore".
        grace: seconds between SIGTERM and SIGKILL.

    Raises:
        Failure: with the child's exit code unless that is 0; 128 and the number of the signal that has ended it; 5 if
            what is held was lost.
    """
    own_group = not sys.stdin.isatty()  # a group in the background could not read the terminal
    try:
        child = await asyncio.create_subprocess_exec(
            *command,
            env={**environ, **os.environ},
            process_group=0 if own_group else None,
            preexec_fn=_tie_to(os.getpid()),
        )
    except OSError as error:
        raise Failure(ExitCode.ERROR, f"{command[0]}: {error.strerror}") from None
    loop = asyncio.get_running_loop()
    for one in _FORWARDED:
        loop.add_signal_handler(one, _send, child.pid, one, own_group)
    ended = start_task(child.wait(), name="etcd-aio command")
    loss = start_task(_until(lost), name="etcd-aio loss")
    try:
        await asyncio.wait((ended, loss), return_when=asyncio.FIRST_COMPLETED)
        is_lost = loss.done() and not ended.done()
        if is_lost and on_lost != "ignore":
            await _end(child, ended, own_group, on_lost, grace)
        code = await ended
    finally:
        loss.cancel()
        if child.returncode is None:
            _send(child.pid, signal.SIGKILL, own_group)
        await asyncio.wait((ended, loss))
    if is_lost:
        raise Failure(ExitCode.INTERRUPTED, "the lease has ended, so the command was ended")
    if code:
        shown = f"signal {-code}" if code < 0 else f"exit status {code}"
        raise Failure(_SIGNALLED - code if code < 0 else code, shown)


async def _end(
    child: asyncio.subprocess.Process, ended: "asyncio.Task[int]", own_group: bool, how: str, grace: float
) -> None:
    """Terminate the child; kill it after the grace."""
    if how == "term":
        _send(child.pid, signal.SIGTERM, own_group)
        await asyncio.wait((ended,), timeout=grace)
    if not ended.done():
        _send(child.pid, signal.SIGKILL, own_group)


def _tie_to(parent: int) -> Callable[[], None] | None:
    """What the child runs first, so that it gets SIGTERM when its parent dies; None where that does not exist."""
    if sys.platform != "linux":
        return None
    import ctypes

    library = ctypes.CDLL(None)

    def tie() -> None:
        library.prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGTERM)
        if os.getppid() != parent:  # it has died before
            os.kill(os.getpid(), signal.SIGTERM)

    return tie


def _send(pid: int, number: int, to_group: bool) -> None:
    with suppress(ProcessLookupError):
        (os.killpg if to_group else os.kill)(pid, number)
