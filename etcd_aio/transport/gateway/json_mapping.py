"""etcd's JSON mapping: the HTTP path of each RPC, and protobuf bytes to JSON and back. Pure.

It is protobuf's canonical JSON with the field names of the .proto files: 64-bit integers are strings, bytes are base64,
defaults are absent. Releases differ in details, so replies are read with tolerance: a field may have its .proto name or
its JSON name, a number may be a string or not, an enum a name or a number, and unknown fields are ignored. Requests are
written in the one way that every release reads: servers ignore the names that they do not know, and a wrong one would
be lost silently.
"""

import json
from binascii import Error as Base64Error
from binascii import a2b_base64, b2a_base64
from collections.abc import Callable, Mapping
from functools import cache
from types import MappingProxyType
from typing import Final, TypeAlias, TypeVar

import etcd_aio.pb as pb
from etcd_aio import methods
from etcd_aio.codec import Field, argument_name, decode, fields_of, message_class_of, writers
from etcd_aio.dataclass import dataclass
from etcd_aio.methods import AnyMethod, Cardinality

M = TypeVar("M", bound=pb.Message)

Convert: TypeAlias = Callable[[object], object]
"""Makes a field's value, as `codec.writers` takes it, from its JSON."""

PATHS: Final[Mapping[AnyMethod, str]] = MappingProxyType(
    {
        methods.RANGE: "kv/range",
        methods.PUT: "kv/put",
        methods.DELETE_RANGE: "kv/deleterange",
        methods.TXN: "kv/txn",
        methods.COMPACT: "kv/compaction",
        methods.WATCH: "watch",
        methods.LEASE_GRANT: "lease/grant",
        methods.LEASE_REVOKE: "lease/revoke",
        methods.LEASE_KEEP_ALIVE: "lease/keepalive",
        methods.LEASE_TIME_TO_LIVE: "lease/timetolive",
        methods.LEASE_LEASES: "lease/leases",
        methods.MEMBER_ADD: "cluster/member/add",
        methods.MEMBER_REMOVE: "cluster/member/remove",
        methods.MEMBER_UPDATE: "cluster/member/update",
        methods.MEMBER_LIST: "cluster/member/list",
        methods.MEMBER_PROMOTE: "cluster/member/promote",
        methods.ALARM: "maintenance/alarm",
        methods.STATUS: "maintenance/status",
        methods.DEFRAGMENT: "maintenance/defragment",
        methods.HASH: "maintenance/hash",
        methods.HASH_KV: "maintenance/hashkv",
        methods.SNAPSHOT: "maintenance/snapshot",
        methods.MOVE_LEADER: "maintenance/transfer-leadership",
        methods.DOWNGRADE: "maintenance/downgrade",
        methods.AUTH_ENABLE: "auth/enable",
        methods.AUTH_DISABLE: "auth/disable",
        methods.AUTH_STATUS: "auth/status",
        methods.AUTHENTICATE: "auth/authenticate",
        methods.USER_ADD: "auth/user/add",
        methods.USER_GET: "auth/user/get",
        methods.USER_LIST: "auth/user/list",
        methods.USER_DELETE: "auth/user/delete",
        methods.USER_CHANGE_PASSWORD: "auth/user/changepw",
        methods.USER_GRANT_ROLE: "auth/user/grant",
        methods.USER_REVOKE_ROLE: "auth/user/revoke",
        methods.ROLE_ADD: "auth/role/add",
        methods.ROLE_GET: "auth/role/get",
        methods.ROLE_LIST: "auth/role/list",
        methods.ROLE_DELETE: "auth/role/delete",
        methods.ROLE_GRANT_PERMISSION: "auth/role/grant",
        methods.ROLE_REVOKE_PERMISSION: "auth/role/revoke",
    }
)
"""The path of each RPC that the gateway serves, behind `/v3/`, as etcd's rpc.proto has them since 3.5."""

_WITHOUT_HEADER: Final = frozenset({methods.DEFRAGMENT, methods.MOVE_LEADER})  # etcd leaves their replies empty
# The fields of requests whose .proto names are not those of the messages' attributes.
_PROTO_NAMES: Final = MappingProxyType(
    {
        "hashed_password": "hashedPassword",
        "id": "ID",
        "is_learner": "isLearner",
        "member_id": "memberID",
        "peer_urls": "peerURLs",
        "perm_type": "permType",
        "target_id": "targetID",
        "ttl": "TTL",
    }
)
_LONG: Final = frozenset({"int64", "uint64"})
_RANGES: Final[Mapping[str, tuple[int, int]]] = MappingProxyType(
    {
        "int32": (-(1 << 31), (1 << 31) - 1),
        "int64": (-(1 << 63), (1 << 63) - 1),
        "uint32": (0, (1 << 32) - 1),
        "uint64": (0, (1 << 64) - 1),
        "enum": (-(1 << 63), (1 << 63) - 1),  # betterproto2 keeps what is no int32
    }
)


class MappingError(ValueError):
    """The JSON does not fit the message. Never leaves the engine; its text has no part of the message."""


@dataclass(frozen=True, slots=True)
class GatewayRoute:
    """How the gateway serves one RPC.

    Attributes:
        path: the HTTP path.
        cardinality: how many messages travel each way.
        to_json: the JSON text of an encoded request.
        to_wire: the encoded reply of its parsed JSON; raises MappingError, or RecursionError for one that nests deep.
        has_header: every reply has a header, so that an answer without one is not the server's.
    """

    path: str
    cardinality: Cardinality
    to_json: Callable[[bytes], bytes]
    to_wire: Callable[[object], bytes]
    has_header: bool = False


Routes: TypeAlias = Callable[[str], GatewayRoute | None]
"""Returns the route of a gRPC path; None if the gateway does not serve it."""


def etcd_route(path: str) -> GatewayRoute | None:
    """The route of one of etcd's RPCs."""
    return _routes().get(path)


@cache
def _routes() -> Mapping[str, GatewayRoute]:
    return {method.path: _route(method, path) for method, path in PATHS.items()}


def _route(method: AnyMethod, path: str) -> GatewayRoute:
    request: type[pb.Message] = method.request

    def to_json(payload: bytes) -> bytes:
        return json.dumps(to_dict(decode(request, payload)), separators=(",", ":")).encode()

    def to_wire(found: object) -> bytes:
        return from_json(message_class_of(method.reply), found)

    has_header = method.cardinality is Cardinality.UNARY and method not in _WITHOUT_HEADER
    return GatewayRoute(f"/v3/{path}", method.cardinality, to_json, to_wire, has_header)


# --- requests ---


def to_dict(message: pb.Message) -> dict[str, object]:
    """The JSON object of a message, as a server reads it."""
    found: dict[str, object] = {}
    for field in fields_of(type(message)).values():
        value = getattr(message, field.name)
        if value is None or (not value and not field.may_be_none):
            continue
        name = json_name(field)
        found[name] = [_to_json(field, one) for one in value] if field.repeated else _to_json(field, value)
    return found


def json_name(field: Field) -> str:
    """The name of a request's field in its JSON."""
    return _PROTO_NAMES.get(field.name, field.name)


def _to_json(field: Field, value: object) -> object:
    if isinstance(value, pb.Message):
        return to_dict(value)
    if isinstance(value, bytes):
        return b2a_base64(value, newline=False).decode("ascii")
    if isinstance(value, bool | str):
        return value
    number = int(value)  # type: ignore[call-overload] # what is left is a number or an enum
    return str(number) if field.proto_type in _LONG else number


# --- replies ---


def from_json(message_class: type[pb.Message], found: object) -> bytes:
    """The encoded message of a parsed JSON object.

    Raises:
        MappingError: it is not the object of such a message.
    """
    if type(found) is not dict:
        raise MappingError(f"{message_class.__name__}: not an object")
    names = _names(message_class)
    values: dict[str, object] = {}
    for name, value in found.items():
        known = names[name]
        if known is not None and value is not None:  # null is the default
            try:
                values[known[0]] = known[1](value)
            except (TypeError, ValueError, KeyError) as error:
                if isinstance(error, MappingError):
                    raise
                raise MappingError(f"{message_class.__name__}.{known[0]}: not of its type") from None
    return writers[message_class](**values)


class _Names(dict[str, tuple[str, Convert] | None]):
    """The argument and the conversion of each JSON name that has come so far; None for unknown ones."""

    _MOST = 1024  # a server has no more, and no longer ones; something else may send anything
    _LONGEST = 64

    def __init__(self, message_class: type[pb.Message]) -> None:
        super().__init__()
        fields = fields_of(message_class).values()
        self._known = {_plain(field.name): (argument_name(field), _converter(field)) for field in fields}

    def __missing__(self, name: str) -> tuple[str, Convert] | None:
        found = self._known.get(_plain(name))
        if len(self) < self._MOST and len(name) <= self._LONGEST:
            self[name] = found
        return found


_names: Final = cache(_Names)


def _plain(name: str) -> str:
    """The letters that the .proto name, the JSON name and the attribute of a field have in common."""
    return name.replace("_", "").lower()


def _converter(field: Field) -> Convert:
    one = _converter_of_one(field)
    if not field.repeated:
        return one

    def convert(found: object) -> object:
        if type(found) is not list:
            raise TypeError
        return [one(value) for value in found]

    return convert


def _converter_of_one(field: Field) -> Convert:
    held = field.message_class
    if held is not None:
        return lambda found: from_json(held, found)
    if field.proto_type == "bytes":
        return _bytes
    if field.proto_type == "string":
        return _text
    if field.proto_type == "bool":
        return _flag
    least, most = _RANGES[field.proto_type]
    words = {} if field.enum_class is None else {str(one.name): int(one) for one in field.enum_class}

    def number(found: object) -> int:
        if type(found) is str:
            value = words[found] if found in words else int(found)
        elif type(found) is int:
            value = found
        else:
            raise TypeError
        if not least <= value <= most:
            raise ValueError
        return value

    return number


def _bytes(found: object) -> bytes:
    if type(found) is not str:
        raise TypeError
    try:
        return a2b_base64(found, strict_mode=True) if found else b""
    except Base64Error:
        found = found.replace("-", "+").replace("_", "/")  # the other alphabet, perhaps without padding
        return a2b_base64(found + "=" * (-len(found) % 4), strict_mode=True)


def _text(found: object) -> str:
    if type(found) is not str:
        raise TypeError
    found.encode()  # a lone surrogate is not text; its error is a ValueError
    return found


def _flag(found: object) -> bool:
    if type(found) is not bool:
        raise TypeError
    return found
