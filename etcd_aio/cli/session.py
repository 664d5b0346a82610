"""The run of one command: its client, its input, and what it prints."""

import os
import re
import signal
import sys
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, BinaryIO, Final, TypeVar

from etcd_aio.cli.connection import ClientSettings, terminal_prompt
from etcd_aio.cli.contexts import VARIABLE, ContextFile
from etcd_aio.cli.formats import FORMATS, format_of
from etcd_aio.cli.outcome import ExitCode, Failure, bad_arguments
from etcd_aio.cli.signals import INTERRUPTS, wanted
from etcd_aio.cli.style import Style

if TYPE_CHECKING:
    from etcd_aio import Client
    from etcd_aio.cli.results import Shown
    from etcd_aio.config import ClientOptions
    from etcd_aio.observing import Observer

_T = TypeVar("_T")
_RAW_BYTE: Final = re.compile("[\udc80-\udcff]")  # as text has bytes that are no UTF-8


class Session:
    """The run of one command.

    Args:
        flags: the global flags that were given, by name.
        is_local: the command asks no server, so contexts do not matter.
        options: more options of the clients.

    Attributes:
        flags: the global flags that were given, by name.
        connection: makes clients.
        format: the word of the output format.
        interrupted: the failure that ends the command if a signal comes from now on.
    """

    def __init__(
        self, flags: dict[str, str], *, is_local: bool = False, options: "ClientOptions | None" = None
    ) -> None:
        self.flags = flags
        self.interrupted = Failure(ExitCode.INTERRUPTED)
        context = None
        if not is_local:
            context = ContextFile().read().chosen(flags.get("context") or os.environ.get(VARIABLE, ""))
        self.connection = ClientSettings(flags, os.environ, terminal_prompt(), context, options)
        self.format = self.connection.setting("write_out", "simple")
        values = self.connection.setting("values", "text")
        if values not in ("text", "json"):
            raise bad_arguments("--values must be text or json")
        if "values" in flags and self.format != "pretty-json":
            raise bad_arguments("--values is only for `--write-out=pretty-json`")
        self._style = Style(is_hex=self.connection.switch("hex"), parses_values=values == "json")

    @property
    def is_simple(self) -> bool:
        """Whether the output is for people."""
        return self.format == "simple"

    def check_format(self) -> None:
        """Refuse a format that does not exist.

        Raises:
            Failure: there is no such format.
        """
        if self.format not in FORMATS:
            raise Failure(ExitCode.BAD_FEATURE, "unsupported output format")

    def decode(self, word: str) -> None:
        """Show values as what a word says they are; empty for the bytes that they are.

        Raises:
            Failure: there is no such word, or the format shows bytes only.
        """
        if not word:
            return
        if word != "kubernetes":
            raise bad_arguments(f"--decode knows kubernetes, and not {word!r}")
        if self.format not in ("simple", "json", "pretty-json"):
            raise bad_arguments("--decode is only for `--write-out=simple`, `json` and `pretty-json`")
        self._style = replace(self._style, decodes=True)

    def client(self, endpoint: str | None = None, *, observers: "Sequence[Observer]" = ()) -> "Client":
        """Make a client, of all endpoints or of one; the verb enters it."""
        self.check_format()
        return self.connection.client(endpoint, observers=observers)

    async def call(self, ask: "Callable[[Client], Awaitable[_T]]") -> _T:
        """Call a client that is made for this call alone."""
        async with self.client() as client:
            return await ask(client)

    def show(self, result: "Shown", *, value_only: bool = False) -> None:
        """Print a result in the format of the command.

        Raises:
            Failure: the result has no such format.
        """
        style = replace(self._style, value_only=value_only)
        text = format_of(self.format)(result, style)
        if text is None:
            raise Failure(ExitCode.BAD_FEATURE, f"{self.format} not supported as output format")
        self.write(text)

    def line(self, text: str) -> None:
        """Print a line, whatever the format."""
        self.write(f"{text}\n")

    def write(self, text: str) -> None:
        """Print text at once."""
        self.write_bytes(text.encode("utf-8", "surrogateescape"))

    def write_bytes(self, raw: bytes) -> None:
        """Print bytes at once."""
        with _signals_interrupt():
            sys.stdout.buffer.write(raw)
            sys.stdout.buffer.flush()

    def complain(self, text: str) -> None:
        """Print a line to stderr."""
        complain(text)

    def warn_of_variables(self) -> None:
        """Name the variables that look like settings and are none."""
        for name in self.connection.unknown_variables:
            complain(f"unrecognized environment variable {name}: there is no such flag")

    def all_input(self) -> bytes:
        """Everything on stdin."""
        with self.interruptible() as stdin:
            return stdin.read()

    def input_line(self) -> bytes:
        """The next line on stdin; empty at its end."""
        with self.interruptible() as stdin:
            return stdin.readline()

    @contextmanager
    def interruptible(self) -> Iterator[BinaryIO]:
        """Give stdin for reads that block the loop: a signal ends the command nevertheless."""
        with _signals_interrupt():
            yield sys.stdin.buffer

    def password(self, name: str) -> str:
        """Ask twice for a new password.

        Raises:
            Failure: there is no terminal, it is empty, or the two differ.
        """
        ask = terminal_prompt()
        if ask is None:
            raise Failure(ExitCode.BAD_ARGUMENTS, "failed to ask password: stdin is not a terminal")
        first = ask(f"Password of {name}: ")
        if not first:
            raise Failure(ExitCode.BAD_ARGUMENTS, "empty password")
        if ask(f"Type password of {name} again for confirmation: ") != first:
            raise Failure(ExitCode.BAD_ARGUMENTS, "given passwords are different")
        return first


@contextmanager
def _signals_interrupt() -> Iterator[None]:
    """While the block blocks the loop, which then sees no signals, those that interrupt raise KeyboardInterrupt."""
    before = {one: signal.signal(one, signal.default_int_handler) for one in wanted(INTERRUPTS)}
    try:
        yield
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)


def complain(text: str) -> None:
    """Print a line to stderr. Bytes that are no UTF-8 are shown as such, since terminals cannot."""
    shown = _RAW_BYTE.sub(lambda found: f"\\x{ord(found[0]) - 0xDC00:02x}", text)
    sys.stderr.write(f"{shown}\n")
    sys.stderr.flush()


async def endpoint_of(client: "Client") -> str:
    """The endpoint of a client of one endpoint.

    Raises:
        EtcdError: it is a DNS name without addresses.
    """
    if not client.endpoints:
        from etcd_aio.errors import EtcdError

        try:
            await client.get("health", serializable=True)  # as soon as there is an answer of DNS, whatever it is
        except EtcdError:
            if not client.endpoints:
                raise
    return client.endpoints[0]
