"""Dumps as lines of JSON. Pure.

    {"etcd_aio_dump":1,"revision":812,"prefix":"app/","cluster":"cdf818194e3a8c32"}
    {"key":"app/mode","value":"green","mod_revision":640}
    {"key":"app/raw","value":{"base64":"AP8="},"mod_revision":811,"lease":"694d7fe5","lease_ttl":30}
    {"end":true,"count":2,"sha256":"..."}

Bytes are text if they are UTF-8, else `{"base64": ...}`. Keys are in order, each once. The digest is that of all bytes
before the last line, so a dump that was cut off, or damaged, is recognised. Without a digest in its last
line, as in a dump that was edited, only its form is checked.
"""

import hashlib
import json
from base64 import b64decode, b64encode
from collections.abc import Iterable, Iterator
from typing import Final, TypeAlias

from etcd_aio.dataclass import dataclass

Json: TypeAlias = "bool | int | str | dict[str, Json]"

_VERSION: Final = 1


class MalformedDumpError(ValueError):
    """The text is not a dump, or only a part of one."""


@dataclass(frozen=True, slots=True)
class DumpHead:
    """The first line.

    Attributes:
        revision: at which the keys were read.
        prefix: of the keys.
        cluster: id of the cluster, in hexadecimal.
    """

    revision: int
    prefix: bytes
    cluster: str


@dataclass(frozen=True, slots=True)
class DumpedKey:
    """A line of a key.

    Attributes:
        key: the key.
        value: its value.
        mod_revision: the revision of its last change; 0 if it is not known.
        lease: id of its lease; 0 for none.
        lease_ttl: seconds for which the lease was granted; 0 for none.
    """

    key: bytes
    value: bytes
    mod_revision: int = 0
    lease: int = 0
    lease_ttl: int = 0


class DumpWriter:
    """Makes the lines of one dump.

    Args:
        head: the content of the first line.
    """

    def __init__(self, head: DumpHead) -> None:
        self._digest = hashlib.sha256()
        self._count = 0
        self._head = head

    def begin(self) -> bytes:
        """The first line."""
        head = self._head
        fields: dict[str, Json] = {"etcd_aio_dump": _VERSION, "revision": head.revision, "prefix": packed(head.prefix)}
        return self._counted({**fields, "cluster": head.cluster})

    def key(self, one: DumpedKey) -> bytes:
        """The line of a key."""
        self._count += 1
        fields: dict[str, Json] = {"key": packed(one.key), "value": packed(one.value), "mod_revision": one.mod_revision}
        if one.lease:
            fields |= {"lease": f"{one.lease & 2**64 - 1:x}", "lease_ttl": one.lease_ttl}
        return self._counted(fields)

    def end(self) -> bytes:
        """The last line."""
        return _line({"end": True, "count": self._count, "sha256": self._digest.hexdigest()})

    def _counted(self, fields: dict[str, Json]) -> bytes:
        line = _line(fields)
        self._digest.update(line)
        return line


def _line(fields: dict[str, Json]) -> bytes:
    return json.dumps(fields, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def packed(raw: bytes) -> Json:
    """Bytes as JSON."""
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return {"base64": b64encode(raw).decode()}


def read_head(line: bytes) -> DumpHead:
    """The first line.

    Raises:
        MalformedDumpError: the line is not the first line of a dump.
    """
    fields = _fields(line, 1)
    if fields.get("etcd_aio_dump") != _VERSION:
        raise MalformedDumpError("line 1: this is not a dump of etcd-aio, or one of a newer version")
    try:
        return DumpHead(_number(fields, "revision"), _bytes(fields["prefix"]), str(fields.get("cluster", "")))
    except (LookupError, TypeError, ValueError):
        raise MalformedDumpError("line 1: malformed") from None


def read_keys(lines: Iterable[bytes], head: DumpHead) -> Iterator[DumpedKey]:
    """The keys of all lines after the first one.

    Args:
        lines: the lines after the first one.
        head: the first line.

    Raises:
        MalformedDumpError: a line is malformed, keys are out of order, or the end is missing.
    """
    last: bytes | None = None
    rest = iter(lines)
    for number, line in enumerate(rest, 2):
        fields = _fields(line, number)
        if "end" in fields:
            if fields.get("count") != number - 2:
                raise MalformedDumpError(
                    f"line {number}: the dump has {number - 2} keys, but its last line gives another number"
                )
            if any(other.strip() for other in rest):
                raise MalformedDumpError(f"line {number + 1}: there are lines after the end of the dump")
            return
        try:
            one = _key(fields)
        except (LookupError, TypeError, ValueError):
            raise MalformedDumpError(f"line {number}: malformed") from None
        if not one.key.startswith(head.prefix) or not one.key:
            raise MalformedDumpError(f"line {number}: the key is not below the prefix of the dump")
        if last is not None and one.key <= last:
            raise MalformedDumpError(f"line {number}: the keys are not in order")
        last = one.key
        yield one
    raise MalformedDumpError("the dump is incomplete: its last line is missing")


def check(lines: Iterable[bytes]) -> DumpHead:
    """Read a whole dump, to refuse it before anything is done with it.

    Returns:
        Its first line.

    Raises:
        MalformedDumpError: the dump is malformed, damaged or cut off.
    """
    digest, last = hashlib.sha256(), b""

    def digested() -> Iterator[bytes]:
        nonlocal last
        for line in lines:
            digest.update(last)
            last = line
            yield line

    source = digested()
    head = read_head(next(source, b""))
    for _ in read_keys(source, head):
        pass
    expected = json.loads(last).get("sha256", "") if last.strip() else ""
    if expected and expected != digest.hexdigest():
        raise MalformedDumpError("the dump was changed: its keys do not match its digest")
    return head


def _fields(line: bytes, number: int) -> dict[str, object]:
    try:
        found: object = json.loads(line)
    except (ValueError, RecursionError):
        text = "this is not a dump of etcd-aio" if number == 1 else "malformed"
        raise MalformedDumpError(f"line {number}: {text}") from None
    if not isinstance(found, dict):
        raise MalformedDumpError(f"line {number}: malformed")
    return found


def _key(fields: dict[str, object]) -> DumpedKey:
    lease = fields.get("lease", "0")
    if not isinstance(lease, str):
        raise TypeError("lease")
    return DumpedKey(
        _bytes(fields["key"]),
        _bytes(fields["value"]),
        _number(fields, "mod_revision"),
        int(lease, 16),
        _number(fields, "lease_ttl"),
    )


def _number(fields: dict[str, object], name: str) -> int:
    found = fields.get(name, 0)
    if not isinstance(found, int) or isinstance(found, bool) or found < 0:
        raise TypeError(name)
    return found


def _bytes(found: object) -> bytes:
    if isinstance(found, str):
        return found.encode()
    if isinstance(found, dict) and isinstance(found.get("base64"), str) and len(found) == 1:
        return b64decode(found["base64"], validate=True)
    raise TypeError("bytes")
