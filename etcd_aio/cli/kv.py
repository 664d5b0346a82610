"""The verbs get, put, del and compaction; a txn uses their words and flags too."""

import asyncio
from collections.abc import Sequence
from typing import Any, Final

from etcd_aio import Client, DeleteResult, Header, KeyValue, RangeResult, op
from etcd_aio.cli.arguments import lease_of, only_word, raw, whole
from etcd_aio.cli.go_text import as_text, quoted
from etcd_aio.cli.grammar import Switch, value, verb
from etcd_aio.cli.outcome import ExitCode, Failure, bad_arguments
from etcd_aio.cli.session import Session
from etcd_aio.types import SortBy, SortOrder

_SORTED_BY: Final = {
    "": SortBy.KEY,
    "CREATE": SortBy.CREATE_REVISION,
    "KEY": SortBy.KEY,
    "MODIFY": SortBy.MOD_REVISION,
    "VALUE": SortBy.VALUE,
    "VERSION": SortBy.VERSION,
}
_ORDERS: Final = {"": SortOrder.ASCEND, "ASCEND": SortOrder.ASCEND, "DESCEND": SortOrder.DESCEND}
_SECONDS_TO_INTERRUPT: Final = 2.0


def is_serializable(consistency: str) -> bool:
    """Whether the word for the consistency is that for serializable reads.

    Raises:
        Failure: there is no such word.
    """
    if consistency not in ("l", "s"):
        raise Failure(ExitCode.BAD_FEATURE, f'unknown consistency flag "{consistency}"')
    return consistency == "s"


def _keys(words: Sequence[str], prefix: bool, from_key: bool, *, is_delete: bool) -> dict[str, Any]:
    """The arguments that name the keys in calls of the client."""
    if prefix and from_key:
        raise bad_arguments("`--prefix` and `--from-key` cannot be set at the same time, choose one")
    if len(words) > 1 and (prefix or from_key):
        raise bad_arguments("too many arguments, only accept one argument when `--prefix` or `--from-key` is set")
    key, end = raw(words[0]), raw(words[1]) if len(words) > 1 else b""
    if (prefix or from_key) and not key:
        return {"all_keys": True}
    if prefix:
        return {"prefix": key}
    if from_key or end == b"\0":
        return {"all_keys": True} if is_delete and key == b"\0" else {"from_key": key}
    return {"key": key, "range_end": end} if end else {"key": key}


def range_of(words: tuple[str, ...], options: dict[str, Any]) -> op.RangeOp:
    """The operation of the words and flags of `get`.

    Raises:
        Failure: they exclude each other, or are unknown.
    """
    if not words:
        raise bad_arguments("get command needs one argument as key and an optional argument as range_end")
    if options["keys_only"] and options["count_only"]:
        raise bad_arguments("`--keys-only` and `--count-only` cannot be set at the same time, choose one")
    order, target = options["order"].upper(), options["sort_by"].upper()
    if order not in _ORDERS:
        raise Failure(ExitCode.BAD_FEATURE, f"bad sort order {options['order']}")
    if target not in _SORTED_BY:
        raise Failure(ExitCode.BAD_FEATURE, f"bad sort target {options['sort_by']}")
    for kind in ("create", "mod"):
        least, most = options[f"min_{kind}_rev"], options[f"max_{kind}_rev"]
        if 0 < most < least:
            raise Failure(ExitCode.BAD_FEATURE, f"--min-{kind}-rev {least} > --max-{kind}-rev {most}")
    return op.range(
        **_keys(words, options["prefix"], options["from_key"], is_delete=False),
        limit=max(0, options["limit"]),
        revision=max(0, options["rev"]),
        sort_by=_SORTED_BY[target],
        sort_order=_ORDERS[order],
        serializable=is_serializable(options["consistency"]),
        keys_only=options["keys_only"],
        count_only=options["count_only"],
        min_mod_revision=max(0, options["min_mod_rev"]),
        max_mod_revision=max(0, options["max_mod_rev"]),
        min_create_revision=max(0, options["min_create_rev"]),
        max_create_revision=max(0, options["max_create_rev"]),
    )


@verb(
    "get",
    "<key> [range_end]",
    Switch("--prefix", help="all keys that begin with the key"),
    Switch("--from-key", help="all keys from the key on"),
    value("--rev", kind=int, default=0, help="at this revision"),
    value("--limit", kind=int, default=0, help="the largest number of keys; 0 for all"),
    value("--order", default="", help="ASCEND or DESCEND"),
    value("--sort-by", default="", help="CREATE, KEY, MODIFY, VALUE or VERSION"),
    Switch("--keys-only", help="without the values"),
    Switch("--count-only", help="only the number of keys, with --write-out=fields"),
    Switch("--print-value-only", help="only the values, with --write-out=simple"),
    value("--consistency", default="l", help="linearizable (l) or serializable (s)"),
    value("--min-create-rev", kind=int, default=0, help="created at this revision or later"),
    value("--max-create-rev", kind=int, default=0, help="created at this revision or before"),
    value("--min-mod-rev", kind=int, default=0, help="changed last at this revision or later"),
    value("--max-mod-rev", kind=int, default=0, help="changed last at this revision or before"),
    Switch("--stream", help="read in chunks: for large ranges"),
    Switch("--raw", help="write the bytes of the values, and nothing else"),
    value("--decode", default="", help="kubernetes: show the values that its API server writes as its objects"),
    completes="keys",
)
async def get(session: Session, words: tuple[str, ...], **options: Any) -> None:
    """Gets a key or a range of keys. A key that does not exist prints nothing."""
    operation = range_of(words, options)
    if options["decode"] and (options["raw"] or options["keys_only"]):
        raise bad_arguments("`--decode` excludes `--raw` and `--keys-only`")
    session.decode(options["decode"])
    async with session.client() as client:
        found = await (_streamed(client, operation, options["order"]) if options["stream"] else client.do(operation))
    if options["count_only"] and session.format != "fields":
        raise bad_arguments("--count-only is only for `--write-out=fields`")
    if options["print_value_only"] and not session.is_simple:
        raise bad_arguments("print-value-only is only for `--write-out=simple`")
    if options["raw"]:
        session.write("".join(as_text(kv.value) for kv in found))
    else:
        session.show(found, value_only=options["print_value_only"])
    if options["decode"] and options["print_value_only"]:
        from etcd_aio.cli.kubernetes import problem_lines  # few commands decode

        for kv in found:
            for line in problem_lines(as_text(kv.key), kv.value):
                session.complain(line)


async def _streamed(client: Client, operation: op.RangeOp, order: str) -> RangeResult:
    """Read a range in chunks, as one result.

    Raises:
        Failure: an order is given, and it is not that of the keys.
    """
    is_plain = operation.sort_by is SortBy.KEY and operation.sort_order is SortOrder.ASCEND
    if order and not is_plain:
        raise Failure(ExitCode.ERROR, "--stream does not support custom sort orders")
    bounds = (operation.min_mod_revision, operation.max_mod_revision, operation.min_create_revision)
    if not is_plain or any((*bounds, operation.max_create_revision, operation.limit, operation.count_only)):
        return await client.do(operation)
    keys = operation.keys
    scan = client.scan(
        key=keys.key if keys.range_end != b"\0" else None,
        range_end=keys.range_end if keys.range_end not in (b"", b"\0") else None,
        from_key=keys.key if keys.range_end == b"\0" else None,
        revision=operation.revision,
        keys_only=operation.keys_only,
        serializable=operation.serializable,
    )
    header: Header | None = None
    kvs: list[KeyValue] = []
    async for page in scan.pages():
        header = header or page.header
        kvs += page.kvs
    return RangeResult(header or Header(), tuple(kvs), count=len(kvs))


def put_of(session: Session | None, words: Sequence[str], options: dict[str, Any]) -> op.PutOp:
    """The operation of the words and flags of `put`.

    Args:
        session: has the value on stdin, if it is no word; None if stdin has something else.
        words: the words.
        options: the flags.

    Raises:
        Failure: they exclude each other, or the value is missing.
    """
    text = "put command needs 1 argument and input from stdin or 2 arguments"
    if not words:
        raise bad_arguments(text)
    if options["ignore_value"] and len(words) > 1:
        raise bad_arguments("put command needs only 1 argument when 'ignore-value' is set")
    content: bytes | None = None
    if not options["ignore_value"]:
        content = raw(words[1]) if len(words) > 1 else b"" if session is None else session.all_input()
        if len(words) == 1 and not content:
            raise bad_arguments(text)
    lease = lease_of(options["lease"])
    flags = {"prev_kv": options["prev_kv"], "ignore_lease": options["ignore_lease"], "lease": lease or None}
    if content is None:
        return op.put(raw(words[0]), ignore_value=True, **flags)
    return op.put(raw(words[0]), content, **flags)


@verb(
    "put",
    "<key> <value> (or the value on stdin)",
    value("--lease", default="0", help="id of the lease, in hexadecimal, that the key is attached to"),
    Switch("--prev-kv", help="print the key as it was before"),
    Switch("--ignore-value", help="keep the value"),
    Switch("--ignore-lease", help="keep the lease"),
    completes="keys",
)
async def put(session: Session, words: tuple[str, ...], **options: Any) -> None:
    """Puts a key. Write `--` before a value that begins with `-`."""
    operation = put_of(session, words, options)
    session.show(await session.call(lambda client: client.do(operation)))


def delete_of(words: tuple[str, ...], options: dict[str, Any]) -> op.DeleteOp:
    """The operation of the words and flags of `del`.

    Raises:
        Failure: they exclude each other.
    """
    if not 1 <= len(words) <= 2:
        raise bad_arguments("del command needs one argument as key and an optional argument as range_end")
    keys = _keys(words, options["prefix"], options["from_key"], is_delete=True)
    return op.delete(**keys, prev_kv=options["prev_kv"])


@verb(
    "del",
    "<key> [range_end]",
    Switch("--prefix", help="all keys that begin with the key"),
    Switch("--from-key", help="all keys from the key on"),
    Switch("--range", help="the keys up to range_end, without a warning"),
    Switch("--prev-kv", help="print the keys as they were before"),
    completes="keys",
)
async def delete(session: Session, words: tuple[str, ...], **options: Any) -> None:
    """Deletes a key, or the range of keys before range_end."""
    operation = delete_of(words, options)
    if len(words) > 1 and not options["range"]:
        await _time_to_interrupt(session, words)
    async with session.client() as client:
        result: DeleteResult = await client.do(operation)
    session.show(result)


async def _time_to_interrupt(session: Session, words: tuple[str, ...]) -> None:
    begin, end = quoted(raw(words[0])), quoted(raw(words[1]))
    session.complain(
        f"Warning: Keys between {begin} and {end} will be deleted. Interrupt the command within the next "
        f"{_SECONDS_TO_INTERRUPT:g} seconds to cancel. The flag `--range` avoids the delay."
    )
    await asyncio.sleep(_SECONDS_TO_INTERRUPT)


@verb("compaction", "<revision>", Switch("--physical", help="wait until the space is free"))
async def compaction(session: Session, words: tuple[str, ...], *, physical: bool) -> None:
    """Discards the history before a revision."""
    revision = whole(only_word(words, "compaction command needs 1 argument"), "bad revision", ExitCode.ERROR)
    await session.call(lambda client: client.compact(revision, physical=physical))
    session.line(f"compacted revision {revision}")
