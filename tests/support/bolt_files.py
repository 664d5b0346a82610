"""Files as bbolt writes them, made of buckets and pages that a test names, with every page where it says."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from struct import pack
from typing import TypeAlias

BRANCH, LEAF, META, FREELIST = 0x01, 0x02, 0x04, 0x10
NO_FREELIST = 2**64 - 1

Items: TypeAlias = "Mapping[bytes, bytes | Items]"
"""Keys with values, or with buckets within the bucket."""


def fnv(data: bytes) -> int:
    found = 0xCBF29CE484222325
    for byte in data:
        found = (found ^ byte) * 0x100000001B3 % 2**64
    return found


def key_value(key: bytes, value: bytes = b"v", lease: int = 0) -> bytes:
    """A key-value as etcd writes it, with numbers that are less than 128."""
    numbers = b"\x10\x02\x18\x03\x20\x01"
    return _sized(0x0A, key) + numbers + _sized(0x2A, value) + (b"\x30" + bytes((lease,)) if lease else b"")


def _sized(tag: int, content: bytes) -> bytes:
    size, sized = len(content), b""
    while size > 127:
        sized += bytes((size & 127 | 128,))
        size >>= 7
    return bytes((tag,)) + sized + bytes((size,)) + content


def revision(main: int, sub: int = 0, *, is_deleted: bool = False) -> bytes:
    return pack(">QcQ", main, b"_", sub) + (b"t" if is_deleted else b"")


@dataclass
class BoltFile:
    """A file that is made page by page.

    Attributes:
        page_size: bytes of a page.
        most: elements of a page; the rest go to the next one.
        is_inline: buckets that fit stand within the leaf that names them.
        pages: what each page has.
        order: "<" for the numbers of etcd's machines, ">" for others.
    """

    page_size: int = 4096
    most: int = 20
    is_inline: bool = False
    order: str = "<"
    pages: list[bytes] = field(default_factory=lambda: [b"", b""])

    def page(self, kind: int, elements: Sequence[tuple[bytes, bytes]], tail: bytes = b"") -> int:
        """Add a page of elements without positions, each with what stands behind the table; returns its number."""
        number = len(self.pages)
        body = self._body(number, kind, elements) + tail
        count = max(1, -(-len(body) // self.page_size))
        body = body[:12] + pack("<I", count - 1) + body[16:]
        body = body.ljust(count * self.page_size, b"\0")
        self.pages += [body[at : at + self.page_size] for at in range(0, len(body), self.page_size)]
        return number

    def _body(self, number: int, kind: int, elements: Sequence[tuple[bytes, bytes]]) -> bytes:
        size = 16
        table, contents = b"", b""
        for at, (fields, content) in enumerate(elements):
            position = (len(elements) - at) * size + len(contents)
            place = fields.index(b"POSI")
            table += fields[:place] + pack("<I", position) + fields[place + 4 :]
            contents += content
        return pack("<QHHI", number, kind, len(elements), 0) + table + contents

    def leaf(self, items: Items) -> list[tuple[bytes, bytes]]:
        """The elements of a leaf."""
        made = []
        for key, value in items.items():
            flags, content = (0, value) if isinstance(value, bytes) else (1, self.bucket(value))
            made.append((pack("<I", flags) + b"POSI" + pack("<II", len(key), len(content)), key + content))
        return made

    def bucket(self, items: Items) -> bytes:
        """The value of a bucket."""
        if self.is_inline and len(items) < self.most and all(isinstance(value, bytes) for value in items.values()):
            return pack("<QQ", 0, 0) + self._body(0, LEAF, self.leaf(items))
        return pack("<QQ", self.tree(items), 0)

    def tree(self, items: Items) -> int:
        """The root of a tree."""
        rows = sorted(items.items())
        parts = [dict(rows[at : at + self.most]) for at in range(0, len(rows), self.most)] or [{}]
        level = [(min(part, default=b""), self.page(LEAF, self.leaf(part))) for part in parts]
        while len(level) > 1:
            groups = [level[at : at + self.most] for at in range(0, len(level), self.most)]
            level = [(group[0][0], self.page(BRANCH, self.branch(group))) for group in groups]
        return level[0][1]

    def branch(self, children: Sequence[tuple[bytes, int]]) -> list[tuple[bytes, bytes]]:
        """The elements of a branch."""
        return [(b"POSI" + pack("<IQ", len(key), number), key) for key, number in children]

    def meta(self, root: int, *, freelist: int = NO_FREELIST, txn: int = 7, **changed: int) -> bytes:
        """A meta page, without its header."""
        known = {"magic": 0xED0CDAED, "version": 2, "page_size": self.page_size, "pages": len(self.pages), **changed}
        numbers = (known["magic"], known["version"], known["page_size"], 0, root, 0, freelist, known["pages"], txn)
        data = pack(f"{self.order}IIIIQQQQQ", *numbers)
        return data + pack(f"{self.order}Q", changed.get("checksum", fnv(data)))

    def written(self, root: int, *, free: Sequence[int] | None = None, **changed: int) -> bytes:
        """The whole file.

        Args:
            root: the page with the names of the buckets.
            free: the free list; None for none.
            changed: other contents of both meta pages.
        """
        if free is not None:
            number = len(self.pages)
            ids = b"".join(pack("<Q", one) for one in free)
            head = pack("<QHHI", number, FREELIST, min(len(free), 0xFFFF), 0)
            body = head + (pack("<Q", len(free)) if len(free) >= 0xFFFF else b"") + ids
            count = -(-len(body) // self.page_size)
            body = (body[:12] + pack("<I", count - 1) + body[16:]).ljust(count * self.page_size, b"\0")
            self.pages += [body[at : at + self.page_size] for at in range(0, len(body), self.page_size)]
            changed["freelist"] = number
        for number in (0, 1):
            header = pack("<QHHI", number, META, 0, 0)
            body = header + self.meta(root, **{"txn": 7 - number, **changed})
            self.pages[number] = body.ljust(self.page_size, b"\0")
        return b"".join(self.pages)


def database(buckets: Items, **options: int) -> bytes:
    """A file with these buckets, and the bucket "meta" of etcd."""
    file = BoltFile(**options)  # type: ignore[arg-type]
    root = file.tree({b"meta": {b"storageVersion": b"3.7.0"}, **buckets})
    return file.written(root)
