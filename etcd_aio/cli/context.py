"""The verbs of contexts."""

from dataclasses import replace
from pathlib import Path
from typing import Final

from etcd_aio.cli.arguments import exactly, only_word
from etcd_aio.cli.contexts import PASSWORD_COMMAND, Context, ContextFile, Contexts, has_secret
from etcd_aio.cli.grammar import VerbGroup, value
from etcd_aio.cli.outcome import bad_arguments
from etcd_aio.cli.session import Session

_PATHS: Final = ("cert", "key", "cacert")

GROUP = VerbGroup("context", "Keeps endpoints and credentials under names")


@GROUP.verb(
    "add",
    "<name>",
    value("--password-command", default="", help="prints the password of the user"),
    is_local=True,
    short="Keeps the global flags of the command line under a name",
)
async def add(session: Session, words: tuple[str, ...], *, password_command: str) -> None:
    """Keeps the global flags of this command line under a name; the first context becomes the current one."""
    name = only_word(words, "context add needs a name")
    settings = {flag: given for flag, given in session.flags.items() if flag != "context"}
    if any(has_secret(flag, given) for flag, given in settings.items()):
        raise bad_arguments(
            "a context has no secrets: use --user=NAME, and --password-command or a variable; ETCD_PROXY for a proxy's"
        )
    if password_command and "user" not in settings:
        raise bad_arguments("--password-command needs --user")
    settings |= {name: _absolute(settings[name]) for name in _PATHS if name in settings}
    if password_command:
        settings[PASSWORD_COMMAND] = password_command
    file = ContextFile()
    contexts = file.read()
    by_name = {**contexts.by_name, name: Context(name, settings)}
    file.write(Contexts(contexts.current or name, by_name))


def _absolute(path: str) -> str:
    return str(Path(path).absolute())


@GROUP.verb("use", "<name>", is_local=True, completes="context_names")
async def use(session: Session, words: tuple[str, ...]) -> None:
    """Makes a context the current one."""
    name = only_word(words, "context use needs a name")
    file = ContextFile()
    contexts = file.read()
    contexts.chosen(name)
    file.write(replace(contexts, current=name))


@GROUP.verb("list", is_local=True, short="Lists the contexts")
async def list_(session: Session, words: tuple[str, ...]) -> None:
    """Lists the contexts with their endpoints; a star marks the current one."""
    exactly(words, 0, "context list accepts no arguments")
    contexts = ContextFile().read()
    for name, context in sorted(contexts.by_name.items()):
        where = context.settings.get("endpoints") or context.settings.get("discovery_srv", "")
        session.line(f"{'*' if name == contexts.current else ' '} {name} {where}".rstrip())


@GROUP.verb("remove", "<name>", is_local=True, completes="context_names")
async def remove(session: Session, words: tuple[str, ...]) -> None:
    """Removes a context."""
    name = only_word(words, "context remove needs a name")
    file = ContextFile()
    contexts = file.read()
    contexts.chosen(name)
    by_name = {other: context for other, context in contexts.by_name.items() if other != name}
    file.write(Contexts("" if contexts.current == name else contexts.current, by_name))
