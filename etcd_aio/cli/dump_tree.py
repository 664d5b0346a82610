"""Keys with slashes as one nested JSON document, for people. Pure.

A folder keeps the slash at its end, so that a key and a folder of the same name are two entries:

    {
      "app/": {
        "limits/": {
          "max": "10"
        },
        "mode": "green"
      }
    }

Keys come in order, so those of a folder are together, and only the open folders are held.
"""

import json
from typing import Final

from etcd_aio.cli.dump_format import packed

_INDENT: Final = "  "


class DumpTree:
    """The document of keys that come one by one, in order."""

    def __init__(self) -> None:
        self._open: list[bytes] = []
        self._has_entries = False
        self._has_begun = False

    def add(self, key: bytes, value: bytes) -> str:
        """The next piece: closes folders, opens others, and has the entry of the key."""
        *folders, name = key.split(b"/")
        same = 0
        while same < min(len(folders), len(self._open)) and folders[same] == self._open[same]:
            same += 1
        pieces = [] if self._has_begun else ["{"]
        self._has_begun = True
        pieces.append(self._close_to(same))
        for folder in folders[same:]:
            pieces.append(f"{self._next()}{_name(folder + b'/')}: {{")
            self._open.append(folder)
            self._has_entries = False
        pieces.append(f"{self._next()}{_name(name)}: {json.dumps(packed(value), ensure_ascii=False)}")
        self._has_entries = True
        return "".join(pieces)

    def end(self) -> str:
        """The last piece."""
        if not self._has_begun:
            return "{}\n"
        return self._close_to(0) + "\n}\n"

    def _next(self) -> str:
        comma = "," if self._has_entries else ""
        return f"{comma}\n{_INDENT * (len(self._open) + 1)}"

    def _close_to(self, depth: int) -> str:
        pieces = []
        while len(self._open) > depth:
            pieces.append(f"\n{_INDENT * len(self._open)}}}")
            self._open.pop()
            self._has_entries = True
        return "".join(pieces)


def _name(raw: bytes) -> str:
    return json.dumps(raw.decode("utf-8", "backslashreplace"), ensure_ascii=False)
