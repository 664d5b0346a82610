"""The verb txn: three blocks of lines, apart by an empty line, as one transaction."""

from collections.abc import Callable, Iterator
from typing import Final, TypeVar

import click

from etcd_aio import op
from etcd_aio.cli import kv
from etcd_aio.cli.go_text import as_text, words_of
from etcd_aio.cli.grammar import Switch, Verb, verb
from etcd_aio.cli.outcome import ExitCode, Failure, bad_arguments
from etcd_aio.cli.session import Session
from etcd_aio.cli.txn_grammar import condition_of

_T = TypeVar("_T")

_OPERATIONS: Final[dict[str, Verb]] = {"get": kv.get, "put": kv.put, "del": kv.delete}


@verb("txn", "", Switch("--interactive", "-i", help="print what is to be entered"))
async def txn(session: Session, words: tuple[str, ...], *, interactive: bool) -> None:
    """Runs several operations as one transaction, read from stdin.

    Three blocks of lines, each ended by an empty line: conditions such as mod("key") > "0"; the operations if all
    conditions hold; those if one does not.
    """
    if words:
        raise bad_arguments("txn command does not accept argument")
    prompt: Callable[[str], None] = session.line if interactive else lambda _: None
    client = session.client()
    async with client:
        prompt("compares:")
        when = _block(session, condition_of)
        prompt("success requests (get, put, del):")
        then = _block(session, operation_of)
        prompt("failure requests (get, put, del):")
        otherwise = _block(session, operation_of)
        session.show(await client.do(op.txn(when=when, then=then, otherwise=otherwise)))


def _block(session: Session, read: Callable[[bytes], _T]) -> list[_T]:
    return [read(line) for line in _lines(session)]


def _lines(session: Session) -> Iterator[bytes]:
    while True:
        line = session.input_line()
        if not line.endswith(b"\n"):
            raise Failure(ExitCode.INVALID_INPUT, "EOF")
        if not line.strip():
            return
        yield line.strip()


def operation_of(line: bytes) -> op.Op:
    """The operation of a line: a verb with its words and flags.

    Raises:
        Failure: the line is malformed.
    """
    malformed = Failure(ExitCode.INVALID_INPUT, f"invalid txn request: {as_text(line)}")
    try:
        name, *words = map(as_text, words_of(line))
    except ValueError:
        raise malformed from None
    if name not in _OPERATIONS or not words:
        raise malformed
    found = _OPERATIONS[name]
    try:
        parsed = found.of_line(words)
    except click.UsageError:
        raise malformed from None
    if found is kv.get:
        return kv.range_of(parsed.words, parsed.options)
    if found is kv.put:
        return kv.put_of(None, parsed.words, parsed.options)
    return kv.delete_of(parsed.words, parsed.options)
