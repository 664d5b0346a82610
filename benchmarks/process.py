"""The process of one driver: started once, and ended with the run. drivers/loop.py documents the protocol."""

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

# Importing and connecting takes a second or two; after ten times that the driver hangs.
_START_TIMEOUT = 30.0
# After the end of the burst.
_ANSWER_TIMEOUT = 30.0
_STOP_TIMEOUT = 10.0
# A reply may have an entry for every call.
_LONGEST_ANSWER = 1 << 26


class DriverError(Exception):
    """A driver could not execute an order."""


@dataclass(frozen=True, slots=True)
class Burst:
    """One burst of one driver, in seconds; `cpu` is the user and system time of the driver's process.

    If the case counts events, `calls` is the number of events.
    """

    calls: int
    seconds: float
    cpu: float


class DriverProcess:
    """A running driver. It uses no CPU while it waits for its turn."""

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
            command: the command of the driver.
            environ: additional environment variables.
            root: the checkout whose packages it imports.
            start_timeout: the seconds that it may take to connect.

        Raises:
            UnavailableError: it ended, failed or hung before it was connected.
        """
        log = tempfile.TemporaryFile()  # noqa: SIM115 - it lives as long as the driver
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=log,
            limit=_LONGEST_ANSWER,
            cwd=root,
            # Every interpreter finds this package, and no packages of other environments.
            env={**os.environ, "PYTHONPATH": str(root), **environ},
            # Ctrl-C must reach only the main program, which then ends its drivers.
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
        except BaseException:  # also after a cancellation: no process may stay
            await driver.aclose()
            raise
        return driver

    async def measure(self, case: Case, seconds: float, revision: int) -> Burst:
        """Run one burst.

        Args:
            case: the operation.
            seconds: the length of the burst, at least.
            revision: the first revision of the case's history, if it has one.

        Raises:
            DriverError: a call failed or returned a wrong result, or the driver has ended.
        """
        line = f"{case.operation} {case.keys} {case.in_flight} {seconds} {revision}"
        answer = await self.ask(line, seconds + _ANSWER_TIMEOUT)
        match answer:
            case {"calls": int(calls), "seconds": float(elapsed), "cpu": float(cpu)}:
                return Burst(calls, elapsed, cpu)
            case _:
                raise DriverError(f"not understood: {answer}")

    async def ask(self, line: str, timeout: float) -> dict[str, object]:
        """Send one line and wait for the reply.

        Raises:
            DriverError: it reports an error, does not reply in time, or has ended.
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
            # A late reply would be taken for that of the next order.
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
        # It has closed stdout, so it is ending or useless.
        await self._end()
        self._log.seek(0)
        lines = self._log.read().decode(errors="replace").strip().splitlines()
        return f"the driver ended with {self._process.returncode}: {lines[-1] if lines else 'no output'}"

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
        """End the driver, or kill it after a timeout."""
        stdin = self._process.stdin
        assert stdin is not None
        stdin.close()
        try:
            await self._end()
        finally:
            self._log.close()
