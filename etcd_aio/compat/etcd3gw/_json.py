"""Results of etcd_aio as the JSON of etcd's gateway, and the fields of its requests. Pure.

Names are those of etcd's messages, numbers of 64 bits are text, bytes are Base64, and fields with their default are
absent.
"""

from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any, Final

from etcd_aio import DeleteResult, PutResult, RangeResult, TxnResult

# Those fields whose names are not those of etcd_aio.
_NAMES: Final = {
    "id": "ID",
    "ttl": "TTL",
    "granted_ttl": "grantedTTL",
    "peer_urls": "peerURLs",
    "client_urls": "clientURLs",
    "is_learner": "isLearner",
    "db_size": "dbSize",
    "db_size_in_use": "dbSizeInUse",
    "db_size_quota": "dbSizeQuota",
    "raft_index": "raftIndex",
    "raft_applied_index": "raftAppliedIndex",
    "storage_version": "storageVersion",
    "downgrade_info": "downgradeInfo",
    "target_version": "targetVersion",
}
_RESPONSES: Final[Mapping[type, str]] = {
    PutResult: "response_put",
    RangeResult: "response_range",
    DeleteResult: "response_delete_range",
    TxnResult: "response_txn",
}


def to_json(value: Any) -> Any:
    """A result, or a part of one, as JSON."""
    if isinstance(value, TxnResult):
        return _txn(value)
    if is_dataclass(value):
        found = {_NAMES.get(one.name, one.name): getattr(value, one.name) for one in fields(value)}
        return {name: to_json(part) for name, part in found.items() if part or name == "header"}
    if isinstance(value, bytes):
        return b64encode(value).decode()
    if isinstance(value, bool | str):
        return value
    if isinstance(value, int):
        return str(value)
    if isinstance(value, Sequence):
        return [to_json(part) for part in value]
    raise TypeError(f"no JSON for {type(value).__name__}")


def _txn(result: TxnResult) -> dict[str, Any]:
    found: dict[str, Any] = {"header": to_json(result.header)}
    if result.succeeded:
        found["succeeded"] = True
    if result.responses:
        found["responses"] = [{_RESPONSES[type(one)]: to_json(one)} for one in result.responses]
    return found


class Fields:
    """The fields of a request. A name is written as `create_revision` or as `createRevision`.

    Args:
        request: decoded JSON.

    Raises:
        TypeError: it is no object.
    """

    def __init__(self, request: Any) -> None:
        if not isinstance(request, Mapping):
            raise TypeError(f"a request is an object, got {type(request).__name__}")
        self._values = {_plain(name): value for name, value in request.items() if value is not None}

    def number(self, name: str) -> int:
        """A number, which may be text."""
        return int(self._values.get(_plain(name), 0))

    def flag(self, name: str) -> bool:
        """A flag."""
        return bool(self._values.get(_plain(name), False))

    def data(self, name: str) -> bytes:
        """Bytes, which are Base64: also that of URLs, and without its padding, as etcd's gateway takes it."""
        text = str(self._values.get(_plain(name), "")).replace("-", "+").replace("_", "/").rstrip("=")
        return b64decode(text + "=" * (-len(text) % 4), validate=True)

    def text(self, name: str) -> str:
        """Text."""
        return str(self._values.get(_plain(name), ""))

    def word(self, name: str, words: Sequence[Any]) -> Any:
        """Read a word, given by its name or number; the first one if it is left out.

        Raises:
            ValueError: there is no such word.
        """
        value = self._values.get(_plain(name), 0)
        shown = [one.name if isinstance(one, Enum) else one for one in words]
        if isinstance(value, str) and not value.isdecimal():
            return words[shown.index(value)]
        return words[int(value)]

    def messages(self, name: str) -> "list[Fields]":
        """The messages of a list."""
        return [Fields(one) for one in self._values.get(_plain(name), ())]

    def message(self, name: str) -> "Fields | None":
        """A message, if it is there."""
        value = self._values.get(_plain(name))
        return None if value is None else Fields(value)


def _plain(name: str) -> str:
    return name.replace("_", "").lower()
