"""Auth results: what the calls about users, roles and permissions return, as frozen values.

Knows: users, roles, and what a role permits. Never knows: wire messages, passwords; tokens only as a login's answer.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from enum import Enum

from etcd_aio.types.kv import Header, shown_keys


class Permission(Enum):
    """What a role may do with keys."""

    READ = "read"
    WRITE = "write"
    READWRITE = "readwrite"


@dataclass(frozen=True, slots=True, repr=False)
class KeyPermission:
    r"""What a role may do with a key, or with an interval of keys.

    Attributes:
        permission: what it may do.
        key: the first key.
        range_end: the first key that is no longer in; empty for the key alone, b"\0" for no end.
    """

    permission: Permission
    key: bytes
    range_end: bytes = b""

    def __repr__(self) -> str:
        return f"KeyPermission({self.permission.name}, {shown_keys(self.key, self.range_end)})"


@dataclass(frozen=True, slots=True)
class AuthResult:
    """It was done.

    Attributes:
        header: who answered.
    """

    header: Header


@dataclass(frozen=True, slots=True)
class AuthStatus:
    """Whether authentication is enabled. It is true if it is.

    Attributes:
        header: who answered.
        enabled: whether every call must say who makes it.
        auth_revision: how often users, roles and permissions were changed, from 1 on.
    """

    header: Header
    enabled: bool = False
    auth_revision: int = 0

    def __bool__(self) -> bool:
        return self.enabled


@dataclass(frozen=True, slots=True)
class AuthenticateResult:
    """A login.

    Attributes:
        header: who answered.
        token: the token; no `repr` shows it.
    """

    header: Header
    token: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True)
class User:
    """A user.

    Attributes:
        header: who answered.
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
        header: who answered.
        name: the role's name.
        permissions: what it may do, by key.
    """

    header: Header
    name: str
    permissions: tuple[KeyPermission, ...] = ()


@dataclass(frozen=True, slots=True)
class UserListResult(Collection[str]):
    """The names of all users. It has length, iteration and `in`.

    Attributes:
        header: who answered.
        users: the names, in no order.
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
    """The names of all roles. It has length, iteration and `in`.

    Attributes:
        header: who answered.
        roles: the names, in no order.
    """

    header: Header
    roles: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.roles)

    def __iter__(self) -> Iterator[str]:
        return iter(self.roles)

    def __contains__(self, item: object) -> bool:
        return item in self.roles
