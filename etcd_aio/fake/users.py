"""Users, roles and their permissions. Pure."""

from bisect import bisect_left, insort
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from etcd_aio import pb
from etcd_aio.fake.permissions import Interval, covers, interval, is_valid
from etcd_aio.fake.refusals import Reason, Refusal
from etcd_aio.fake.releases import Release

ROOT: Final = "root"
_Type: Final = pb.PermissionType
_READS: Final = frozenset({_Type.READ, _Type.READWRITE})
_WRITES: Final = frozenset({_Type.WRITE, _Type.READWRITE})


@dataclass(slots=True)
class UserRecord:
    """One user.

    Attributes:
        password: of the user; None for one who logs in with a certificate only.
        roles: sorted.
    """

    password: str | None = field(repr=False)
    roles: list[str] = field(default_factory=list)


class Users:
    """The users and the roles of a cluster.

    Attributes:
        is_enabled: whether calls are checked.
        revision: grows with each change.
    """

    def __init__(self, release: Release) -> None:
        self._release = release
        self._users: dict[str, UserRecord] = {}
        self._roles: dict[str, list[pb.Permission]] = {}
        self.is_enabled = False
        self.revision = 1

    # Calls.

    def enable(self) -> None:
        """Begin to check calls."""
        if self.is_enabled:
            return
        root = self._users.get(ROOT)
        if root is None:
            raise Refusal(Reason.ROOT_USER_NOT_EXIST)
        if ROOT not in root.roles:
            raise Refusal(Reason.ROOT_ROLE_NOT_EXIST)
        self.is_enabled = True

    def disable(self) -> None:
        """Check no more calls."""
        if self.is_enabled:
            self.is_enabled = False
            self.revision += 1

    def log_in(self, name: str, password: str) -> None:
        """Check name and password."""
        if not self.is_enabled:
            raise Refusal(Reason.AUTH_NOT_ENABLED)
        user = self._users.get(name)
        if user is not None and user.password is None:
            raise Refusal(Reason.NO_PASSWORD_USER)
        if user is None or user.password != password:
            raise Refusal(Reason.AUTH_FAILED)

    def add_user(self, name: str, password: str | None) -> None:
        """Add a user."""
        if not name:
            raise Refusal(Reason.USER_EMPTY)
        if name in self._users:
            raise Refusal(Reason.USER_ALREADY_EXIST)
        self._users[name] = UserRecord(password)
        self.revision += 1

    def delete_user(self, name: str) -> None:
        """Delete a user."""
        if self.is_enabled and name == ROOT:
            raise Refusal(Reason.INVALID_AUTH_MGMT)
        self._user(name)
        del self._users[name]
        self.revision += 1

    def change_password(self, name: str, password: str) -> None:
        """Change the password of a user; one without a password keeps none."""
        user = self._user(name)
        if user.password is not None:
            user.password = password
        self.revision += 1

    def grant_role(self, name: str, role: str) -> None:
        """Give a role to a user."""
        user = self._user(name)
        if role != ROOT:
            self._role(role)
        if role not in user.roles:
            insort(user.roles, role)
            self.revision += 1

    def revoke_role(self, name: str, role: str) -> None:
        """Take a role from a user."""
        if self.is_enabled and name == role == ROOT:
            raise Refusal(Reason.INVALID_AUTH_MGMT)
        user = self._user(name)
        if role not in user.roles:
            raise Refusal(Reason.ROLE_NOT_GRANTED)
        user.roles.remove(role)
        self.revision += 1

    def roles_of(self, name: str) -> list[str]:
        """The roles of a user."""
        return list(self._user(name).roles)

    def users(self) -> list[str]:
        """The names of all users."""
        return sorted(self._users, key=str.encode)

    def add_role(self, name: str) -> None:
        """Add a role."""
        if not name:
            raise Refusal(Reason.ROLE_EMPTY)
        if name in self._roles:
            raise Refusal(Reason.ROLE_ALREADY_EXIST)
        self._roles[name] = []
        self.revision += 1

    def delete_role(self, name: str) -> None:
        """Delete a role, and take it from all users."""
        if self.is_enabled and name == ROOT:
            raise Refusal(Reason.INVALID_AUTH_MGMT)
        self._role(name)
        del self._roles[name]
        for user in self._users.values():
            if name in user.roles:
                user.roles.remove(name)
        self.revision += 1

    def roles(self) -> list[str]:
        """The names of all roles."""
        return sorted(self._roles, key=str.encode)

    def permissions_of(self, name: str) -> list[pb.Permission]:
        """The permissions of a role. That of root has all of them, whatever was granted to it."""
        permissions = self._role(name)
        if name == ROOT and self._release.shows_permission_of_root:
            return [pb.Permission(perm_type=_Type.READWRITE, range_end=b"\x00")]
        return permissions

    def grant_permission(self, name: str, permission: pb.Permission | None) -> None:
        """Give a permission to a role, or change it."""
        if permission is None:
            raise Refusal(Reason.PERMISSION_NOT_GIVEN)
        if not is_valid(permission.key, permission.range_end):
            raise Refusal(Reason.INVALID_AUTH_MGMT)
        permissions = self._role(name)
        place = bisect_left(permissions, permission.key, key=lambda one: one.key)
        same = permissions[place] if place < len(permissions) else pb.Permission()
        if (same.key, same.range_end) == (permission.key, permission.range_end):  # etcd looks at the first one only
            permissions[place] = permission
        else:
            insort(permissions, permission, key=lambda one: one.key)
        self.revision += 1

    def revoke_permission(self, name: str, key: bytes, end: bytes) -> None:
        """Take a permission from a role."""
        permissions = self._role(name)
        kept = [one for one in permissions if (one.key, one.range_end) != (key, end)]
        if len(kept) == len(permissions):
            raise Refusal(Reason.PERMISSION_NOT_GRANTED)
        self._roles[name] = kept
        self.revision += 1

    # Checks.

    def check_admin(self, name: str | None) -> None:
        """Check that a user has the role of root."""
        if not self.is_enabled:
            return
        if not name:
            raise Refusal(Reason.USER_EMPTY)
        user = self._users.get(name)
        if user is None:
            raise Refusal(Reason.USER_NOT_FOUND)
        if ROOT not in user.roles:
            raise Refusal(Reason.PERMISSION_DENIED)

    def check_read(self, name: str | None, key: bytes, end: bytes) -> None:
        """Check that a user may read an interval."""
        self._check(name, key, end, _READS)

    def check_write(self, name: str | None, key: bytes, end: bytes) -> None:
        """Check that a user may write to an interval."""
        self._check(name, key, end, _WRITES)

    def has_role(self, name: str | None, role: str) -> bool:
        """Whether a user has a role."""
        user = self._users.get(name or "")
        return user is not None and role in user.roles

    # Inside.

    def _check(self, name: str | None, key: bytes, end: bytes, types: frozenset[pb.PermissionType]) -> None:
        if not self.is_enabled:
            return
        if name is None:
            raise Refusal(Reason.USER_EMPTY)
        user = self._users.get(name)
        if user is None:
            raise Refusal(Reason.PERMISSION_DENIED)
        if ROOT not in user.roles and not covers(self._granted(user, types), interval(key, end)):
            raise Refusal(Reason.PERMISSION_DENIED)

    def _granted(self, user: UserRecord, types: frozenset[pb.PermissionType]) -> Iterator[Interval]:
        for role in user.roles:
            for one in self._roles.get(role, ()):
                if one.perm_type in types:
                    yield interval(one.key, one.range_end)

    def _user(self, name: str) -> UserRecord:
        user = self._users.get(name)
        if user is None:
            raise Refusal(Reason.USER_NOT_FOUND)
        return user

    def _role(self, name: str) -> list[pb.Permission]:
        role = self._roles.get(name)
        if role is None:
            raise Refusal(Reason.ROLE_NOT_FOUND)
        return role
