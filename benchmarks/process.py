"""One driver's process: started once, asked many times, ended with the run.

Knows: the line protocol (told in drivers/loop.py), from the other side. Never knows: what the numbers mean.
"""

import asyncio
import json
import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Self

from benchmarks.environments import ROOT, UnavailableError
from benchmarks.workload import Case

# Importing and connecting takes a second or two; ten times that is a driver that hangs.
_START_TIMEOUT = 30.0
# Beyond the burst's own time.
_ANSWER_TIMEOUT = 30.0
_STOP_TIMEOUT = 10.0
# An answer may tell of every single call.
_LONGEST_ANSWER = 1 << 26


class DriverError(Exception):
    """A driver said or showed that it could not do what it was asked."""


@dataclass(frozen=True, slots=True)
class Burst:
    """What one driver did in one burst; seconds throughout, `cpu` is user and system time of the driver's process.

    `calls` of a case that counts events are its events.
    """

    calls: int
    seconds: float
    cpu: float


class DriverProcess:
    """A running driver. It costs nothing while it waits for its turn."""

    def __init__(self, process: asyncio.subprocess.Process, log: IO[bytes]) -> None:
        self._process = process
        self._log = log
        self.versions: dict[str, str] = {}

    @classmethod
    async def start(
        cls,
        command: Sequence[str],
        environ: Mapping[str, str],
        root: Path = ROOT,
        *,
        start_timeout: float = _START_TIMEOUT,
    ) -> Self:
        """Start a driver and wait until it is connected.

        Args:
            command: what starts it.
            environ: variables of its process, beside those of this one.
            root: the checkout whose packages it imports.
            start_timeout: seconds for it to connect.

        Raises:
            UnavailableError: it ended, failed or hung before that.
        """
        log = tempfile.TemporaryFile()  # noqa: SIM115 - it lives as long as the driver
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=log,
            limit=_LONGEST_ANSWER,
            cwd=root,
            # Whichever interpreter runs it finds this package, and nothing that another environment has.
            env={**os.environ, "PYTHONPATH": str(root), **environ},
            # Ctrl-C is for the program, which then ends its drivers in order.
            start_new_session=True,
        )
        driver = cls(process, log)
        try:
            answer = await driver._answer(start_timeout)
            versions = answer["versions"]
            if not isinstance(versions, dict):
                raise DriverError(f"not understood: {answer}")
            driver.versions = {str(name): str(version) for name, version in versions.items()}
        except DriverError as error:
            await driver.aclose()
            raise UnavailableError(str(error)) from error
        except BaseException:  # a cancellation too: no process may stay behind
            await driver.aclose()
            raise
        return driver

    async def measure(self, case: Case, seconds: float, revision: int) -> Burst:
        """One burst.

        Args:
            case: what to do.
            seconds: for how long at least.
            revision: where the history of the case begins, if it has one.

        Raises:
            DriverError: a call failed, gave a wrong answer, or the driver is gone.
        """
        line = f"{case.operation} {case.keys} {case.in_flight} {seconds} {revision}"
        answer = await self.ask(line, seconds + _ANSWER_TIMEOUT)
        match answer:
            case {"calls": int(calls), "seconds": float(elapsed), "cpu": float(cpu)}:
                return Burst(calls, elapsed, cpu)
            case _:
                raise DriverError(f"not understood: {answer}")

    async def ask(self, line: str, timeout: float) -> dict[str, object]:
        """Say one line and wait for the line that answers it.

        Raises:
            DriverError: it says that it could not, or nothing in time, or is gone.
        """
        stdin = self._process.stdin
        assert stdin is not None
        try:
            stdin.write(f"{line}\n".encode())
            await stdin.drain()
        except ConnectionError as error:
            raise DriverError(await self._last_words()) from error
        return await self._answer(timeout)

    async def _answer(self, timeout: float) -> dict[str, object]:
        stdout = self._process.stdout
        assert stdout is not None
        try:
            async with asyncio.timeout(timeout):
                line = await stdout.readline()
        except TimeoutError:
            # Its answer would be taken for the next one's.
            self._kill()
            raise DriverError(f"no answer within {timeout:.0f} s") from None
        if not line:
            raise DriverError(await self._last_words())
        try:
            answer = json.loads(line)
        except ValueError:
            raise DriverError(f"not understood: {line[:200]!r}") from None
        if not isinstance(answer, dict):
            raise DriverError(f"not understood: {line[:200]!r}")
        if "error" in answer:
            raise DriverError(str(answer["error"]))
        return answer

    async def _last_words(self) -> str:
        # It has closed stdout: it is ending, or of no more use.
        await self._end()
        self._log.seek(0)
        lines = self._log.read().decode(errors="replace").strip().splitlines()
        return f"the driver ended with {self._process.returncode}: {lines[-1] if lines else 'it said nothing'}"

    async def _end(self) -> None:
        try:
            async with asyncio.timeout(_STOP_TIMEOUT):
                await self._process.wait()
        except TimeoutError:
            pass
        finally:
            self._kill()
        await self._process.wait()

    def _kill(self) -> None:
        if self._process.returncode is None:
            self._process.kill()

    async def aclose(self) -> None:
        """Let the driver end; kill it if it does not. Bounded in time."""
        stdin = self._process.stdin
        assert stdin is not None
        stdin.close()
        try:
            await self._end()
        finally:
            self._log.close()
