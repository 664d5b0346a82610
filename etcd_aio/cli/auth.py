"""The verbs of authentication: auth, user, role."""

from etcd_aio.cli.arguments import exactly, only_word
from etcd_aio.cli.grammar import Switch, VerbGroup, value
from etcd_aio.cli.outcome import bad_arguments
from etcd_aio.cli.permissions import KIND_OF, keys_of, revoked
from etcd_aio.cli.results import Done
from etcd_aio.cli.session import Session
from etcd_aio.errors import RootRoleNotExistError, printable

AUTH = VerbGroup("auth", "Enables and disables authentication")
USER = VerbGroup("user", "Manages users")
ROLE = VerbGroup("role", "Manages roles")


@AUTH.verb("enable")
async def auth_enable(session: Session, words: tuple[str, ...]) -> None:
    """Enables authentication; gives the user root the role root, if it is missing."""
    exactly(words, 0, "auth enable command does not accept any arguments")
    async with session.client() as client:
        try:
            await client.auth.enable()
        except RootRoleNotExistError:
            await client.auth.role_add("root")
            await client.auth.user_grant_role("root", "root")
            await client.auth.enable()
    session.line("Authentication Enabled")


@AUTH.verb("disable")
async def auth_disable(session: Session, words: tuple[str, ...]) -> None:
    """Disables authentication."""
    exactly(words, 0, "auth disable command does not accept any arguments")
    await session.call(lambda client: client.auth.disable())
    session.line("Authentication Disabled")


@AUTH.verb("status")
async def auth_status(session: Session, words: tuple[str, ...]) -> None:
    """Shows whether authentication is enabled."""
    exactly(words, 0, "auth status command does not accept any arguments")
    session.show(await session.call(lambda client: client.auth.status()))


# Users.


@USER.verb(
    "add",
    "<user name or user:password>",
    Switch("--interactive", default=True, help="=false reads the password from stdin"),
    value("--new-user-password", default="", help="the password"),
    Switch("--no-password", help="a user that is authenticated by the name in its certificate"),
)
async def user_add(
    session: Session, words: tuple[str, ...], *, interactive: bool, new_user_password: str, no_password: bool
) -> None:
    """Adds a user."""
    name = only_word(words, "user add command requires user name as its argument")
    password: str | None = None
    if new_user_password and not no_password:
        password = new_user_password
    elif not no_password:
        name, is_given, password = name.partition(":")
        if is_given and not name:
            raise bad_arguments("empty user name is not allowed")
        if not is_given:
            # etcdctl adds a user with an empty password, by which anyone may log in.
            password = _new_password(session, name, interactive) or None
    result = await session.call(lambda client: client.auth.user_add(name, password))
    session.show(Done(f"User {name} created", result.header))


def _new_password(session: Session, name: str, interactive: bool) -> str:
    if interactive:
        return session.password(name)
    found = session.input_line().split()
    return found[0].decode("utf-8", "surrogateescape") if found else ""


@USER.verb("delete", "<user name>")
async def user_delete(session: Session, words: tuple[str, ...]) -> None:
    """Deletes a user."""
    name = only_word(words, "user delete command requires user name as its argument")
    result = await session.call(lambda client: client.auth.user_delete(name))
    session.show(Done(f"User {name} deleted", result.header))


@USER.verb("get", "<user name>", Switch("--detail", help="print the permissions of the roles"))
async def user_get(session: Session, words: tuple[str, ...], *, detail: bool) -> None:
    """Shows the roles of a user."""
    name = only_word(words, "user get command requires user name as its argument")
    async with session.client() as client:
        user = await client.auth.user_get(name)
        if not detail:
            session.show(user)
            return
        session.line(printable(f"User: {name}"))
        for role in user.roles:
            session.line("")
            session.show(await client.auth.role_get(role))


@USER.verb("list")
async def user_list(session: Session, words: tuple[str, ...]) -> None:
    """Lists the users."""
    exactly(words, 0, "user list command requires no arguments")
    session.show(await session.call(lambda client: client.auth.user_list()))


@USER.verb("passwd", "<user name>", Switch("--interactive", default=True, help="=false reads the password from stdin"))
async def user_passwd(session: Session, words: tuple[str, ...], *, interactive: bool) -> None:
    """Gives a user another password."""
    name = only_word(words, "user passwd command requires user name as its argument")
    password = _new_password(session, name, interactive)
    result = await session.call(lambda client: client.auth.user_change_password(name, password))
    session.show(Done("Password updated", result.header))


@USER.verb("grant-role", "<user name> <role name>")
async def user_grant_role(session: Session, words: tuple[str, ...]) -> None:
    """Gives a user a role."""
    name, role = exactly(words, 2, "user grant command requires user name and role name as its argument")
    result = await session.call(lambda client: client.auth.user_grant_role(name, role))
    session.show(Done(f"Role {role} is granted to user {name}", result.header))


@USER.verb("revoke-role", "<user name> <role name>")
async def user_revoke_role(session: Session, words: tuple[str, ...]) -> None:
    """Takes a role from a user."""
    name, role = exactly(words, 2, "user revoke-role requires user name and role name as its argument")
    result = await session.call(lambda client: client.auth.user_revoke_role(name, role))
    session.show(Done(f"Role {role} is revoked from user {name}", result.header))


# Roles.


@ROLE.verb("add", "<role name>")
async def role_add(session: Session, words: tuple[str, ...]) -> None:
    """Adds a role."""
    name = only_word(words, "role add command requires role name as its argument")
    result = await session.call(lambda client: client.auth.role_add(name))
    session.show(Done(f"Role {name} created", result.header))


@ROLE.verb("delete", "<role name>")
async def role_delete(session: Session, words: tuple[str, ...]) -> None:
    """Deletes a role."""
    name = only_word(words, "role delete command requires role name as its argument")
    result = await session.call(lambda client: client.auth.role_delete(name))
    session.show(Done(f"Role {name} deleted", result.header))


@ROLE.verb("get", "<role name>")
async def role_get(session: Session, words: tuple[str, ...]) -> None:
    """Shows the permissions of a role."""
    name = only_word(words, "role get command requires role name as its argument")
    session.show(await session.call(lambda client: client.auth.role_get(name)))


@ROLE.verb("list")
async def role_list(session: Session, words: tuple[str, ...]) -> None:
    """Lists the roles."""
    exactly(words, 0, "role list command requires no arguments")
    session.show(await session.call(lambda client: client.auth.role_list()))


@ROLE.verb(
    "grant-permission",
    "<role name> <permission type> <key> [endkey]",
    Switch("--prefix", help="for all keys that begin with the key"),
    Switch("--from-key", help="for all keys from the key on"),
)
async def role_grant_permission(session: Session, words: tuple[str, ...], *, prefix: bool, from_key: bool) -> None:
    """Gives a role a permission: read, write or readwrite."""
    if len(words) < 3:
        raise bad_arguments("role grant command requires role name, permission type, and key [endkey] as its argument")
    name, kind, *keys = words
    if kind.lower() not in KIND_OF:
        raise bad_arguments(f"invalid permission type: {kind}")
    of = keys_of(keys, prefix, from_key)
    result = await session.call(
        lambda client: client.auth.role_grant_permission(name, permission=KIND_OF[kind.lower()], **of)
    )
    session.show(Done(f"Role {name} updated", result.header))


@ROLE.verb(
    "revoke-permission",
    "<role name> <key> [endkey]",
    Switch("--prefix", help="for all keys that begin with the key"),
    Switch("--from-key", help="for all keys from the key on"),
)
async def role_revoke_permission(session: Session, words: tuple[str, ...], *, prefix: bool, from_key: bool) -> None:
    """Takes a permission from a role."""
    if len(words) < 2:
        raise bad_arguments("role revoke-permission command requires role name and key [endkey] as its argument")
    name, *keys = words
    of = keys_of(keys, prefix, from_key)
    result = await session.call(lambda client: client.auth.role_revoke_permission(name, **of))
    session.show(Done(revoked(name, keys[0], of), result.header))
