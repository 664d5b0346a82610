"""The command that `watch` runs for each event."""

import asyncio
import os
from base64 import b64encode
from collections.abc import Mapping
from typing import Final, Literal, TypeAlias

from etcd_aio import Event
from etcd_aio.base import start_task
from etcd_aio.cli.go_text import quoted
from etcd_aio.cli.outcome import ExitCode, Failure

Form: TypeAlias = Literal["etcdctl", "raw"]


def variables(event: Event, revision: int, form: Form) -> dict[str, bytes]:
    """The variables of an event.

    Args:
        event: the event.
        revision: of its batch.
        form: "etcdctl" for text quoted as in Go; "raw" for the bytes themselves, and in base64. A variable cannot have
            a byte 0: then it is only there in base64.
    """
    found = {"ETCD_WATCH_REVISION": f"{revision}".encode()}
    if form == "etcdctl":
        found["ETCD_WATCH_EVENT_TYPE"] = f'"{event.type.name}"'.encode()
        for name, raw in (("KEY", event.key), ("VALUE", event.value)):
            found[f"ETCD_WATCH_{name}"] = quoted(raw).encode("utf-8", "surrogateescape")
        return found
    found["ETCD_WATCH_EVENT_TYPE"] = event.type.name.encode()
    for name, raw in (("KEY", event.key), ("VALUE", event.value)):
        found[f"ETCD_WATCH_{name}_B64"] = b64encode(raw)
        if b"\0" not in raw:
            found[f"ETCD_WATCH_{name}"] = raw
    return found


class Commands:
    """Runs a command for each event.

    Args:
        command: its words; empty for none.
        form: that of the variables.
        jobs: the number that run at once; with one they run in the order of the events.
    """

    def __init__(self, command: tuple[str, ...], form: Form = "etcdctl", jobs: int = 1) -> None:
        self._command: Final = command
        self._form: Final = form
        self._jobs = jobs
        self._running: set[asyncio.Task[None]] = set()

    async def run(self, event: Event, revision: int) -> None:
        """Run the command; with one job, to its end.

        Raises:
            Failure: the command has failed, or an earlier one.
        """
        if not self._command:
            return
        await self._settle(self._jobs - 1)
        found = variables(event, revision, self._form)
        self._running.add(start_task(_run(self._command, found), name="etcd-aio command"))
        if self._jobs == 1:
            await self._settle(0)

    async def aclose(self) -> None:
        """Kill the commands that run."""
        for task in self._running:
            task.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)

    async def _settle(self, most: int) -> None:
        while len(self._running) > most:
            done, self._running = await asyncio.wait(self._running, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()


async def _run(command: tuple[str, ...], found: Mapping[str, bytes]) -> None:
    # What is inherited is of another watch around this one: nothing of that may be taken for this event.
    others = {name: value for name, value in os.environb.items() if not name.startswith(b"ETCD_WATCH_")}
    environ = {**others, **{name.encode(): value for name, value in found.items()}}
    shown = " ".join(command)
    try:
        child = await asyncio.create_subprocess_exec(*command, env=environ)
    except OSError as error:
        raise Failure(ExitCode.ERROR, f"command {shown!r} error ({error.strerror})") from None
    try:
        code = await child.wait()
    finally:
        if child.returncode is None:
            child.kill()
    if code:
        raise Failure(ExitCode.ERROR, f"command {shown!r} error (exit status {code})")
