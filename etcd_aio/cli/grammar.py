"""The grammar of etcdctl on click's parser.

Verbs may be shortened as long as they are unique: `endp stat`. Flags are accepted before and after the verb, and the
last one wins. Flags may stand between arguments, and switches take a value after an equals sign:
`--prefix=false`. What follows `--` may be a command that the verb runs, so it is kept apart.
"""

import re
from collections.abc import Callable, Coroutine, Mapping, Sequence
from functools import cache
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypedDict, Unpack

import click

from etcd_aio.cli.go_text import whole_number
from etcd_aio.cli.outcome import bad_arguments
from etcd_aio.config import read_flag
from etcd_aio.dataclass import dataclass
from etcd_aio.errors import ConfigError

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

_META: Final = "etcd_aio.cli"
_COMMAND: Final = "etcd_aio.cli.command"
_FLAG: Final = re.compile(r"-[A-Za-z]|--[A-Za-z]")
_SHORT_WITH_VALUE: Final = re.compile(r"-[A-Za-z]=")


@dataclass(slots=True)
class Invocation:
    """A verb with its words and flags, parsed and not run yet.

    Attributes:
        work: the verb's coroutine function.
        name: the verb.
        flags: the global flags that were given, by name.
        words: the arguments before `--`; all of them if the verb runs no command.
        options: the verb's own flags; of a verb that runs a command also `command`, the words after `--`.
        is_local: the verb asks no server.
    """

    work: "Work"
    name: str
    flags: dict[str, str]
    words: tuple[str, ...]
    options: dict[str, Any]
    is_local: bool


Work: TypeAlias = Callable[..., Coroutine[Any, Any, None]]


class Switch(click.Option):
    """A flag without a value, which also takes `=true` and `=false`.

    Args:
        name: such as `--prefix`; a short one may follow.
        help: what it does.
        default: True or False; None to tell apart whether it was given.
    """

    def __init__(self, *names: str, help: str, default: bool | None = False, **attributes: Any) -> None:
        first, *others = names
        declared = [f"{first}/--no-{first.removeprefix('--')}", *others]
        super().__init__(declared, help=help, default=default, **attributes)

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        """The names without the negative one, which only the parser uses."""
        return None if self.hidden else (", ".join(self.opts), self.help or "")


def integer(text: str | int) -> int:
    """A whole number, as the flags of etcdctl read it; `--help` shows the name of this function.

    Raises:
        BadParameter: the text is not a whole number.
    """
    if isinstance(text, int):  # the default
        return text
    try:
        return whole_number(text, 0)
    except ValueError:
        raise click.BadParameter(f"{text!r} is not a valid integer.") from None


def value(*names: str, help: str, default: Any = None, kind: type = str, **attributes: Any) -> click.Option:
    """A flag with a value."""
    return click.Option(names, help=help, default=default, type=integer if kind is int else kind, **attributes)


@cache
def global_options() -> tuple[click.Parameter, ...]:
    """The global flags, which every verb has; `--help` of a verb does not show them."""
    from etcd_aio.cli.connection import GLOBAL_FLAGS

    made: list[click.Parameter] = []
    for flag in GLOBAL_FLAGS:
        attributes: dict[str, Any] = {"expose_value": False, "hidden": True, "callback": _remember}
        if flag.is_switch:
            made.append(Switch(*flag.names, help=flag.help, default=None, **attributes))
        else:
            made.append(value(*flag.names, help=flag.help, multiple=flag.name == "endpoints", **attributes))
    return tuple(made)


def _remember(ctx: click.Context, param: click.Parameter, given: Any) -> None:
    if given is None or given == ():
        return
    text = ",".join(given) if isinstance(given, tuple) else str(given).lower() if isinstance(given, bool) else given
    ctx.meta.setdefault(_META, {})[str(param.name)] = text


def given_flags(ctx: click.Context) -> dict[str, str]:
    """The global flags that were given so far, by name."""
    found: dict[str, str] = ctx.meta.get(_META, {})
    return found


def _plain_words(command: click.Command, ctx: click.Context, words: Sequence[str]) -> list[str]:
    """Turn values of switches, and those of short flags behind an equals sign, into what click parses."""
    switches = {name: param for param in command.get_params(ctx) if isinstance(param, Switch) for name in param.opts}
    plain: list[str] = []
    for at, word in enumerate(words):
        if word == "--":
            return [*plain, *words[at:]]
        name, is_given, given = word.partition("=")
        if is_given and name in switches:
            try:
                is_on = read_flag(name, given)
            except ConfigError as error:
                raise click.UsageError(error.message, ctx) from None
            plain.append(name if is_on else switches[name].secondary_opts[0])
        else:
            plain.append(word[:2] + word[3:] if _SHORT_WITH_VALUE.match(word) else word)
    return plain


def _completer(name: str) -> Callable[[click.Context, click.Parameter, str], list[str]] | None:
    """Return a function that completes arguments by one of `completion.py`, which it imports when it is called."""
    if not name:
        return None

    def complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
        found: list[str] = getattr(import_module("etcd_aio.cli.completion"), name)(ctx, param, incomplete)
        return found

    return complete


def _flags(command: click.Command, ctx: click.Context, incomplete: str) -> "list[CompletionItem]":
    from click.shell_completion import CompletionItem

    options = [param for param in command.get_params(ctx) if isinstance(param, click.Option)]
    words = [(word, option.help) for option in options for word in option.opts]
    return [CompletionItem(word, help=help_) for word, help_ in words if word.startswith(incomplete)]


class VerbTraits(TypedDict, total=False):
    """Traits of a verb, which most do not have.

    Attributes:
        runs_command: the words after `--` are a command.
        is_local: it asks no server.
        completes: the function of `completion.py` that completes its arguments.
    """

    runs_command: bool
    is_local: bool
    completes: str


class Verb(click.Command):
    """A verb.

    Args:
        name: the verb.
        work: the coroutine function that runs it; it gets the session, the words, the words after `--` if the verb
            runs a command, and the flags by name.
        usage: its arguments, for `--help`.
        options: its flags.
        traits: see `VerbTraits`.
    """

    def __init__(
        self, name: str, work: Work, usage: str, options: Sequence[click.Parameter], **traits: Unpack[VerbTraits]
    ) -> None:
        completer = _completer(traits.get("completes", ""))
        words = click.Argument(["words"], nargs=-1, type=click.UNPROCESSED, shell_complete=completer)
        super().__init__(name, params=[words, *options, *global_options()], help=work.__doc__)
        self._work = work
        self._usage = usage
        self._runs_command = traits.get("runs_command", False)
        self._is_local = traits.get("is_local", False)

    def of_line(self, words: Sequence[str]) -> Invocation:
        """Parse a line of a program's input: the words behind the verb, without global flags and `--help`.

        Raises:
            Failure: a separator has no command behind it.
            UsageError: the words are malformed otherwise.
        """
        ctx = click.Context(self, info_name=self.name, help_option_names=[])
        with ctx.scope(cleanup=False):
            self.parse_args(ctx, list(words))
        if given_flags(ctx):
            raise click.UsageError(f"no such option: {min(given_flags(ctx))}", ctx)
        return self.invoke(ctx)

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        """The arguments as etcdctl shows them."""
        return ["[options]", self._usage] if self._usage else ["[options]"]

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the words behind the verb."""
        command: tuple[str, ...] = ()
        if ctx.resilient_parsing:  # for completion
            return super().parse_args(ctx, args)
        if self._runs_command and "--" in args:
            at = args.index("--")
            args, command = args[:at], tuple(args[at + 1 :])
            if not command:
                raise bad_arguments("bad number of arguments (found separator --, but no commands)")
        ctx.meta[_COMMAND] = command
        return super().parse_args(ctx, _plain_words(self, ctx, args))

    def shell_complete(self, ctx: click.Context, incomplete: str) -> "list[CompletionItem]":
        """The flags of the verb, and the global ones."""
        return _flags(self, ctx, incomplete)

    def invoke(self, ctx: click.Context) -> Invocation:
        """Return what is to be run."""
        options = dict(ctx.params)
        words = options.pop("words")
        if self._runs_command:
            options["command"] = ctx.meta[_COMMAND]
        return Invocation(self._work, self.name or "", given_flags(ctx), tuple(words), options, self._is_local)


def verb(name: str, usage: str = "", *options: click.Parameter, **traits: Unpack[VerbTraits]) -> Callable[[Work], Verb]:
    """Make a verb of the coroutine function that runs it; the first line of its docstring is its help."""
    return lambda work: Verb(name, work, usage, options, **traits)


@dataclass(frozen=True, slots=True)
class VerbEntry:
    """A verb of a group.

    Attributes:
        source: the verb, or the module of this package and the name in it, such as `kv:get`, imported when it is used.
        help: one line.
    """

    source: "Verb | str"
    help: str

    def load(self) -> click.Command:
        """The verb."""
        if isinstance(self.source, Verb):
            return self.source
        module, _, name = self.source.partition(":")
        found: click.Command = getattr(import_module(f"etcd_aio.cli.{module}"), name)
        return found


class VerbGroup(click.Group):
    """A group of verbs.

    Args:
        name: its name.
        help: one line.
        entries: the verbs by name, besides those that `verb` makes.
    """

    def __init__(self, name: str, help: str, entries: Mapping[str, VerbEntry] = MappingProxyType({})) -> None:
        super().__init__(name, params=[*global_options()], help=help)
        self._entries = dict(entries)

    def verb(
        self, name: str, usage: str = "", *options: click.Parameter, short: str = "", **traits: Unpack[VerbTraits]
    ) -> Callable[[Work], Verb]:
        """Make a verb of this group, as the function `verb` does.

        Args:
            name: the verb.
            usage: its arguments, for `--help`.
            options: its flags.
            short: its help in the list of the verbs; empty for the beginning of the docstring.
            traits: see `VerbTraits`.
        """

        def made(work: Work) -> Verb:
            found = verb(name, usage, *options, **traits)(work)
            self._entries[name] = VerbEntry(found, short or re.split("[;:.]", work.__doc__ or "")[0])
            return found

        return made

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names of the verbs."""
        return list(self._entries)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The verb of this name, or the only one whose name begins so."""
        names = [name for name in self._entries if name.startswith(cmd_name)]
        found = cmd_name if cmd_name in self._entries else names[0] if len(names) == 1 else None
        return None if found is None else self._entries[found].load()

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The verb, under its whole name."""
        _, command, rest = super().resolve_command(ctx, args)
        return None if command is None else command.name, command, rest

    def shell_complete(self, ctx: click.Context, incomplete: str) -> "list[CompletionItem]":
        """The verbs, which are not imported, or the global flags."""
        if incomplete.startswith("-"):
            return _flags(self, ctx, incomplete)
        from click.shell_completion import CompletionItem

        found = [(name, entry.help) for name, entry in self._entries.items() if name.startswith(incomplete)]
        return [CompletionItem(name, help=help_) for name, help_ in found]

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the global flags before the verb."""
        if ctx.resilient_parsing:
            return super().parse_args(ctx, args)
        return super().parse_args(ctx, _plain_words(self, ctx, self._verb_first(ctx, args)))

    def _verb_first(self, ctx: click.Context, words: Sequence[str]) -> list[str]:
        """Move flags that are not global behind the verb, which has them; without a verb the words are as they were.

        Which of them take a value is not known before the verb is: the next word is one, unless it is a flag or a verb.
        """
        takes_value = {
            name: not param.is_flag
            for param in self.get_params(ctx)
            if isinstance(param, click.Option)
            for name in (*param.opts, *param.secondary_opts)
        }
        own: list[str] = []
        others: list[str] = []
        rest = list(words)
        while rest and _FLAG.match(rest[0]):
            word = rest.pop(0)
            name = word.partition("=")[0] if word.startswith("--") else word[:2]
            place = own if name in takes_value else others
            place.append(word)
            is_guessed = bool(rest) and rest[0] not in self._entries and not rest[0].startswith("-")
            if name == word and rest and takes_value.get(name, is_guessed):
                place.append(rest.pop(0))
        return [*own, rest[0], *others, *rest[1:]] if rest else list(words)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the verbs without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, entry.help) for name, entry in self._entries.items()])
