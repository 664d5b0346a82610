"""Contents of a database of etcd: its hash, revision and number of keys, as etcdutl counts them. Pure.

The hash is CRC-32C of the name of each bucket, and of each key and value in it, in order. The bucket "key" has each
version of each key by its revision; the last of them tells whether the key exists.
"""

import re
from collections.abc import Callable, Iterator
from hashlib import blake2b
from typing import Final

from etcd_aio.dataclass import dataclass
from etcd_aio.errors import DatabaseFileError
from etcd_aio.offline.crc32c import crc32c
from etcd_aio.offline.pages import DatabaseFile
from etcd_aio.offline.tree import Leaf, bucket_leaves, leaves

_KEYS: Final = b"key"
_META: Final = b"meta"
_STORAGE_VERSION: Final = b"storageVersion"
_SEMVER: Final = re.compile(rb"([0-9]{1,18})\.([0-9]{1,18})\.([0-9]{1,18})((?:-[0-9A-Za-z.-]+)?(?:\+[0-9A-Za-z.-]+)?)")
_LONG_KEY: Final = 64  # bytes; of longer keys only a hash is kept
_DEEPEST_BUCKETS: Final = 16  # etcd has no buckets within buckets

# Of a key-value as etcd writes it, behind the key: three numbers, a value, perhaps a lease.
_VARINT: Final = rb"[\x80-\xff]{0,8}[\x00-\x7f]"
_NUMBERS: Final = re.compile(rb"(?:\x10%b)?(?:\x18%b)?(?:\x20%b)?(\x2a)?" % (_VARINT, _VARINT, _VARINT), re.DOTALL)
_LEASE: Final = re.compile(rb"(?:\x30%b)?" % _VARINT, re.DOTALL)


@dataclass(frozen=True, slots=True)
class Contents:
    """The contents of a database.

    Attributes:
        hash: the checksum.
        revision: the last revision.
        total_keys: the number of keys.
        version: the storage version; empty if there is none.
    """

    hash: int
    revision: int
    total_keys: int
    version: str


def contents_of(file: DatabaseFile, go_on: Callable[[], None] = lambda: None) -> Contents:
    """Read a whole database.

    Args:
        file: the pages.
        go_on: is called now and then, and may raise an exception to end it.

    Raises:
        DatabaseFileError: it is damaged, or is no database of etcd.
    """
    counted = _Keys()
    crc, version, is_etcd = 0, "", False
    for name, value in _buckets(file):
        crc = crc32c(name, crc)
        for leaf in bucket_leaves(file, value):
            go_on()
            crc = _hashed(leaf, crc)
            if name == _KEYS:
                for key, content, is_bucket in leaf.items:
                    counted.add(key, b"" if is_bucket else content)
            elif name == _META:
                for key, content, is_bucket in leaf.items:
                    if key == _STORAGE_VERSION and not is_bucket:
                        version = _version(content)
            for inner in _inner_buckets(leaf):
                _check(file, inner, 1)
        is_etcd = is_etcd or name == _META
    file.check_rest()
    if not is_etcd:
        raise DatabaseFileError("the file is no database of etcd: it has no bucket 'meta'")
    return Contents(crc, counted.revision, len(counted.live), version)


def _buckets(file: DatabaseFile) -> Iterator[tuple[bytes, bytes]]:
    for leaf in leaves(file, file.meta.root):
        for name, value, is_bucket in leaf.items:
            if not is_bucket:
                raise DatabaseFileError(f"the file is no database of etcd: {name[:40]!r} is no bucket")
            yield name, value


def _hashed(leaf: Leaf, crc: int) -> int:
    if leaf.hashed is not None:
        return crc32c(leaf.hashed, crc)
    for key, value, is_bucket in leaf.items:
        crc = crc32c(key, crc)
        if not is_bucket:
            crc = crc32c(value, crc)
    return crc


def _inner_buckets(leaf: Leaf) -> Iterator[bytes]:
    return (value for _, value, is_bucket in leaf.items if is_bucket)


def _check(file: DatabaseFile, value: bytes, depth: int) -> None:
    """Check a bucket within a bucket, which is not hashed."""
    if depth > _DEEPEST_BUCKETS:
        raise DatabaseFileError(f"the file is no database of etcd: buckets are nested {_DEEPEST_BUCKETS} deep")
    for leaf in bucket_leaves(file, value):
        for inner in _inner_buckets(leaf):
            _check(file, inner, depth + 1)


def _version(raw: bytes) -> str:
    """A storage version as etcd prints it; empty if it is malformed."""
    found = _SEMVER.fullmatch(raw)
    return "" if found is None else f"{int(found[1])}.{int(found[2])}.{int(found[3])}{found[4].decode()}"


class _Keys:
    """The keys that exist, while their versions are read in the order of their revisions."""

    __slots__ = ("live", "revision")

    def __init__(self) -> None:
        self.live: set[bytes] = set()
        self.revision = 0

    def add(self, revision: bytes, value: bytes) -> None:
        """Add a version of a key.

        Raises:
            DatabaseFileError: its revision or its key cannot be read.
        """
        if len(revision) not in (17, 18) or revision[8] != 0x5F or (revision[0] | revision[9]) & 0x80:
            raise DatabaseFileError(f"the bucket 'key' is damaged: {revision[:40]!r} is no revision")
        self.revision = int.from_bytes(revision[:8])
        key = _key_of(value)
        if len(key) >= _LONG_KEY:
            key = blake2b(key, digest_size=_LONG_KEY).digest()
        if revision[17:] == b"t":
            self.live.discard(key)
        else:
            self.live.add(key)


def _key_of(value: bytes) -> bytes:
    """The key of a key-value, which is checked.

    Raises:
        DatabaseFileError: it is malformed.
    """
    if value[:1] == b"\x0a" and len(value) > 1 and value[1] < 0x80:
        start, end = 2, 2 + value[1]
    elif value[:1] == b"\x0a" and len(value) > 2 and value[2] < 0x80:
        start = 3
        end = start + (value[1] & 0x7F | value[2] << 7)
    else:
        return _any_key_of(value)
    numbers = _NUMBERS.match(value, end)
    if end <= len(value) and numbers is not None:
        at = numbers.end()
        if numbers[1]:
            try:
                size, at = _varint(value, at)
            except DatabaseFileError:
                return _any_key_of(value)
            at += size
        if at <= len(value) and _LEASE.fullmatch(value, at):
            return value[start:end]
    return _any_key_of(value)


def _any_key_of(value: bytes) -> bytes:
    """The key of a key-value in any layout that protobuf allows."""
    key, at = b"", 0
    while at < len(value):
        tag, at = _varint(value, at)
        number, wire = tag >> 3, tag & 7
        if not 0 < number < 1 << 29 or wire not in (0, 1, 2, 5):
            raise _malformed()
        start = at
        if wire == 0:
            _, at = _varint(value, at)
        elif wire == 2:
            size, start = _varint(value, at)
            at = start + size
        else:
            at += 8 if wire == 1 else 4
        if at > len(value):
            raise _malformed()
        if number == 1 and wire == 2:
            key = value[start:at]
    return key


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """A number and the position behind it."""
    number = 0
    for shift in range(0, 70, 7):
        if at >= len(data):
            break
        byte = data[at]
        at += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            if number >= 1 << 64:
                break
            return number, at
    raise _malformed()


def _malformed() -> DatabaseFileError:
    return DatabaseFileError("the bucket 'key' is damaged: it has something that is no key-value")
