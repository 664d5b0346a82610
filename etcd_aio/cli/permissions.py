"""The keys of a permission, from the words and flags of `role grant-permission` and `role revoke-permission`."""

from collections.abc import Mapping, Sequence
from typing import Final, TypedDict

from etcd_aio.cli.arguments import raw
from etcd_aio.cli.go_text import as_text
from etcd_aio.cli.outcome import bad_arguments
from etcd_aio.types import Permission, prefix_end

KIND_OF: Final[Mapping[str, Permission]] = {kind.value: kind for kind in Permission}
"""The permissions by their words."""


class NamedKeys(TypedDict, total=False):
    """The arguments that name keys in calls of the client."""

    key: bytes
    range_end: bytes
    prefix: bytes
    from_key: bytes


def keys_of(words: Sequence[str], prefix: bool, from_key: bool) -> NamedKeys:
    """The arguments that name the keys in calls of the client.

    Args:
        words: the key, and perhaps the end of the range.
        prefix: the keys that begin with the key.
        from_key: the keys from the key on.

    Raises:
        Failure: they exclude each other.
    """
    if prefix and from_key:
        raise bad_arguments("--from-key and --prefix flags are mutually exclusive")
    key, end = raw(words[0]), raw(words[1]) if len(words) > 1 else b""
    if not key:
        return {"from_key": b""} if prefix or from_key else {"key": b"\0"}
    if end and (prefix or from_key):
        raise bad_arguments(f"unexpected endkey argument with --{'prefix' if prefix else 'from-key'} flag")
    if prefix:
        return {"prefix": key}
    if from_key or end == b"\0":
        return {"from_key": key}
    return {"key": key, "range_end": end} if end else {"key": key}


def revoked(role: str, word: str, keys: NamedKeys) -> str:
    """The line that says which permission was taken."""
    if "from_key" in keys:
        return f"Permission of range [{word}, <open ended> is revoked from role {role}"
    end = prefix_end(keys["prefix"]) if "prefix" in keys else keys.get("range_end", b"")
    if not end:
        return f"Permission of key {word} is revoked from role {role}"
    return f"Permission of range [{word}, {as_text(end)}) is revoked from role {role}"
