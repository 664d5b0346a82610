"""The command line `etcd-aio` as a process."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

PROGRAM: Final = (sys.executable, "-m", "etcd_aio")
ROOT: Final = Path(__file__).parent.parent.parent
_SECONDS: Final = 60.0


@dataclass(frozen=True)
class Ended:
    """How a command has ended."""

    code: int
    stdout: bytes
    stderr: str


@asynccontextmanager
async def started(
    *words: str | bytes, environ: Mapping[str, str] | None = None
) -> AsyncIterator[asyncio.subprocess.Process]:
    """A command that runs; it is killed on leaving."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("ETCDCTL_")}
    clean.pop("PYTHONDEVMODE", None)  # in which asyncio writes to stderr what takes long on a busy machine
    clean["XDG_CONFIG_HOME"] = os.devnull  # there are no contexts
    pipe = asyncio.subprocess.PIPE
    child = await asyncio.create_subprocess_exec(
        *PROGRAM, *words, stdin=pipe, stdout=pipe, stderr=pipe, cwd=ROOT, env={**clean, **(environ or {})}
    )
    try:
        yield child
    finally:
        if child.returncode is None:
            child.kill()
        await child.communicate()


async def run(*words: str | bytes, stdin: bytes = b"", environ: Mapping[str, str] | None = None) -> Ended:
    """Run a command to its end."""
    async with started(*words, environ=environ) as child, asyncio.timeout(_SECONDS):
        stdout, stderr = await child.communicate(stdin)
        assert child.returncode is not None
        return Ended(child.returncode, stdout, stderr.decode())
