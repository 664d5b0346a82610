"""The verb completion, and what completes the words of other verbs: keys and names of contexts.

Shells run `etcd-aio` with a variable of click; what it prints then are words, so failures are silent.
"""

import asyncio
import os
from typing import Final

import click

from etcd_aio.cli.arguments import only_word
from etcd_aio.cli.connection import ClientSettings
from etcd_aio.cli.contexts import PASSWORD_COMMAND, VARIABLE, Context, ContextFile
from etcd_aio.cli.go_text import as_text
from etcd_aio.cli.grammar import given_flags, verb
from etcd_aio.cli.outcome import Failure, bad_arguments
from etcd_aio.cli.session import Session
from etcd_aio.errors import EtcdError

_SHELLS: Final = ("bash", "zsh", "fish")
_SECONDS: Final = 0.3
"""Limit for reading the keys: a shell waits meanwhile."""

_MOST: Final = 200


@verb("completion", "<bash|zsh|fish>", is_local=True, completes="shells")
async def completion(session: Session, words: tuple[str, ...]) -> None:
    """Prints the script that completes words in a shell: `source <(etcd-aio completion bash)`."""
    from click.shell_completion import get_completion_class

    from etcd_aio.cli.program import program

    found = get_completion_class(only_word(words, "completion needs a shell: bash, zsh or fish"))
    if found is None or words[0] not in _SHELLS:
        raise bad_arguments("the shell must be bash, zsh or fish")
    session.write(found(program(), {}, "etcd-aio", "_ETCD_AIO_COMPLETE").source())


def shells(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """The shells that have a script."""
    return [shell for shell in _SHELLS if shell.startswith(incomplete)]


def context_names(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """The names of contexts."""
    try:
        return [name for name in ContextFile().read().by_name if name.startswith(incomplete)]
    except Failure:
        return []


def keys(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """The keys that begin so; none if they do not come at once."""
    try:
        return asyncio.run(_keys(given_flags(ctx), incomplete))
    except (Failure, EtcdError, OSError):  # TimeoutError is an OSError
        return []


async def _keys(flags: dict[str, str], incomplete: str) -> list[str]:
    context = ContextFile().read().chosen(flags.get("context") or os.environ.get(VARIABLE, ""))
    if context is not None:  # a command for the password may ask, and may take any time
        settings = {name: value for name, value in context.settings.items() if name != PASSWORD_COMMAND}
        context = Context(context.name, settings)
    async with asyncio.timeout(_SECONDS), ClientSettings(flags, os.environ, None, context).client() as client:
        found = await client.range(prefix=os.fsencode(incomplete), limit=_MOST, keys_only=True)
    words = [as_text(kv.key) for kv in found]
    return [word for word in words if word.isprintable() and " " not in word]
