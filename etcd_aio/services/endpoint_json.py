"""The entries of services in etcd, as Go's `naming/endpoints` writes them. Pure.

    svc/web/10.0.0.1:80  =  {"Op":0,"Addr":"10.0.0.1:80","Metadata":{"zone":"a"}}

The key is `<target>/<name>`. `Op` is a relic of the first format: it is 0 in every entry. Go's reader takes the names
of fields in any case, and ignores other fields; so does this one.
"""

import json
from dataclasses import field
from typing import TYPE_CHECKING, TypeAlias

from etcd_aio.arguments import check_text, encode_key, is_encodable
from etcd_aio.dataclass import dataclass
from etcd_aio.errors import InvalidRequestError
from etcd_aio.types import KeyLike, shown_key

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

JSONValue: TypeAlias = "bool | int | float | str | Sequence[JSONValue] | Mapping[str, JSONValue] | None"
"""Any value that JSON can express."""


@dataclass(frozen=True, slots=True)
class ServiceEndpoint:
    """One endpoint of a service, as etcd has it.

    Attributes:
        key: its key.
        address: where it is reached, such as `10.0.0.1:80`.
        metadata: what it tells about itself; None if it tells nothing.
        revision: the revision of the last change of its entry.
    """

    key: bytes
    address: str
    metadata: JSONValue = field(default=None, hash=False)
    revision: int = 0

    @property
    def host(self) -> str:
        """The host in the address: a name, or an IP address without brackets. The whole address if it has no port."""
        return split_address(self.address)[0]

    @property
    def port(self) -> int | None:
        """The port in the address; None if it has none."""
        return split_address(self.address)[1]


def split_address(address: str) -> tuple[str, int | None]:
    """The host and the port of an address, such as `10.0.0.1:80` or `[::1]:80`. Without a port it is all host."""
    host, colon, port = address.rpartition(":")
    is_bracketed = host.startswith("[") and host.endswith("]")
    if colon and host and port.isascii() and port.isdecimal() and int(port) <= 65535:
        if is_bracketed:
            return host[1:-1], int(port)
        if ":" not in host:
            return host, int(port)
    return (address[1:-1] if address.startswith("[") and address.endswith("]") else address), None


def target_prefix(target: KeyLike) -> bytes:
    """The prefix of all keys of a service.

    Raises:
        EmptyKeyError, InvalidRequestError: the target is empty, or ends with a slash.
        TypeError: it is neither str nor bytes-like.
    """
    encoded = encode_key(target, "target")
    if encoded.endswith(b"/"):
        raise InvalidRequestError(f"target must not end with a slash, which is added: got {shown_key(encoded)}")
    return encoded + b"/"


def entry_key(target: KeyLike, name: str) -> bytes:
    """The key of an entry; the name is usually the address.

    Raises:
        InvalidRequestError, TypeError: the target or the name is no part of a key.
    """
    return target_prefix(target) + encode_key(check_text(name, "name"), "name")


def encode_entry(address: str, metadata: JSONValue) -> bytes:
    """The value of an entry.

    Raises:
        InvalidRequestError: the address is empty, or JSON cannot express the metadata.
        TypeError: the address is not a str.
    """
    if not check_text(address, "address"):
        raise InvalidRequestError("address is empty")
    entry = {"Op": 0, "Addr": address, "Metadata": metadata}
    try:
        return json.dumps(entry, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode()
    except (TypeError, ValueError, RecursionError) as error:
        kind = type(error).__name__
    # Outside of the except block: Python's error may hold a part of the metadata.
    raise InvalidRequestError(f"metadata must be what JSON can express ({kind})")


def decode_entry(value: bytes) -> tuple[str, JSONValue]:
    """The address and the metadata in the value of an entry.

    Raises:
        ValueError: it is no entry. The message repeats nothing of it.
    """
    try:
        entry = json.loads(value)
    except (ValueError, RecursionError):
        entry = None
    if isinstance(entry, dict):
        fields = {name.lower(): content for name, content in entry.items()}
        address = fields.get("addr")
        if isinstance(address, str) and address and is_encodable(address):
            return address, fields.get("metadata")
    raise ValueError("not an entry of a service: expected a JSON object with an address")
