"""Results of the calls about users, roles and permissions, as frozen values."""

from collections.abc import Collection, Iterator
from dataclasses import field
from enum import Enum
from typing import Literal, TypeAlias

from etcd_aio.dataclass import dataclass
from etcd_aio.types.kv import Header, shown_keys


class Permission(Enum):
    """The kinds of access to keys."""

    READ = "read"
    WRITE = "write"
    READWRITE = "readwrite"


PermissionLike: TypeAlias = Permission | Literal["read", "write", "readwrite"]


@dataclass(frozen=True, slots=True, repr=False)
class KeyPermission:
    r"""A role's access to a key, or to an interval of keys.

    Attributes:
        permission: the kind of access.
        key: the first key.
        range_end: the first key after the interval; empty for the key alone, b"\0" for no end.
    """

    permission: Permission
    key: bytes
    range_end: bytes = b""

    def __repr__(self) -> str:
        return f"KeyPermission({self.permission.name}, {shown_keys(self.key, self.range_end)})"


@dataclass(frozen=True, slots=True)
class AuthResult:
    """A change to users, roles or authentication was applied.

    Attributes:
        header: the metadata of the response.
    """

    header: Header


@dataclass(frozen=True, slots=True)
class AuthStatus:
    """Whether authentication is enabled. The status is true if it is.

    Attributes:
        header: the metadata of the response.
        enabled: whether every call must carry a token.
        auth_revision: the number of changes to users, roles and permissions, starting at 1.
    """

    header: Header
    enabled: bool = False
    auth_revision: int = 0

    def __bool__(self) -> bool:
        return self.enabled


@dataclass(frozen=True, slots=True)
class AuthenticateResult:
    """The result of a login.

    Attributes:
        header: the metadata of the response.
        token: the token; no `repr` shows it.
    """

    header: Header
    token: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True)
class User:
    """A user.

    Attributes:
        header: the metadata of the response.
        name: the user's name.
        roles: the names of the user's roles.
    """

    header: Header
    name: str
    roles: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Role:
    """A role.

    Attributes:
        header: the metadata of the response.
        name: the role's name.
        permissions: the role's access to keys.
    """

    header: Header
    name: str
    permissions: tuple[KeyPermission, ...] = ()


@dataclass(frozen=True, slots=True)
class UserListResult(Collection[str]):
    """The names of all users; a collection with length, iteration and `in`.

    Attributes:
        header: the metadata of the response.
        users: the names, in no particular order.
    """

    header: Header
    users: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.users)

    def __iter__(self) -> Iterator[str]:
        return iter(self.users)

    def __contains__(self, item: object) -> bool:
        return item in self.users


@dataclass(frozen=True, slots=True)
class RoleListResult(Collection[str]):
    """The names of all roles; a collection with length, iteration and `in`.

    Attributes:
        header: the metadata of the response.
        roles: the names, in no particular order.
    """

    header: Header
    roles: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.roles)

    def __iter__(self) -> Iterator[str]:
        return iter(self.roles)

    def __contains__(self, item: object) -> bool:
        return item in self.roles
