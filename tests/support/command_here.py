"""The command line in the process of the test, on a fake: no process has to start."""

import io
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest

from etcd_aio.cli.program import perform
from etcd_aio.fake import FakeEtcd
from tests.support.etcdctl_table import Etcdctl


@dataclass
class CommandLine:
    """Runs commands, and says what they print.

    Attributes:
        fake: where they go.
        patch: sets what they read from the process.
        capture: has what they print.
        out: what the last one has written to stdout.
        err: what the last one has written to stderr.
    """

    fake: FakeEtcd
    patch: pytest.MonkeyPatch
    capture: pytest.CaptureFixture[bytes]
    out: bytes = field(default=b"", init=False)
    err: str = field(default="", init=False)

    async def __call__(
        self, *words: str | bytes, stdin: bytes = b"", fake: FakeEtcd | None = None, is_served: bool = False
    ) -> int:
        """Run a command; returns its exit code.

        Args:
            words: the command line.
            stdin: what it reads.
            fake: where it goes instead.
            is_served: it goes there by sockets.
        """
        chosen = fake or self.fake
        self.patch.setenv("ETCDCTL_ENDPOINTS", ",".join(chosen.endpoints))
        self.patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        self.capture.readouterr()
        here = [os.fsdecode(word) for word in words]
        code = await (perform(here) if is_served else perform(here, engine=chosen.engine))
        out, err = self.capture.readouterr()
        self.out, self.err = out, err.decode()
        return code


@dataclass
class EtcdctlHere(Etcdctl):
    """Plays commands of etcdctl on one server by the command line of this process, as far as they end by themselves.

    Attributes:
        command: the command line.
    """

    command: CommandLine = field(kw_only=True)

    async def run(self, words: Sequence[str], stdin: str) -> tuple[int, bytes, bytes]:
        """Run a command to its end."""
        code = await self.command(f"--endpoints={self.endpoint}", *words, stdin=stdin.encode(), is_served=True)
        return code, self.command.out, self.command.err.encode()
