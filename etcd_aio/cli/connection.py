"""Makes clients from global flags, etcdctl's variables and a context.

A flag overrides the variable of its name, and that the setting of the context. Flags and settings become variables,
which `Client.from_env` reads: all have the same values and checks.
"""

import shlex
import ssl
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from etcd_aio.cli.contexts import PASSWORD_COMMAND, VARIABLE, Context
from etcd_aio.cli.outcome import ExitCode, Failure, bad_arguments
from etcd_aio.config import PREFIX, PROXY, RECONNECT_VARIABLE, read_flag
from etcd_aio.dataclass import dataclass
from etcd_aio.errors import ConfigError

if TYPE_CHECKING:
    from etcd_aio import Client
    from etcd_aio.config import ClientOptions
    from etcd_aio.observing import Observer

_DEFAULT_ENDPOINT: Final = "127.0.0.1:2379"  # as etcdctl
_NO_LIMIT: Final = ("0", "0s")
_OTHER_VARIABLES: Final = frozenset({"API", "WATCH_KEY", "WATCH_RANGE_END"})
_WITHOUT_PREFIX: Final = frozenset({PROXY, RECONNECT_VARIABLE})


@dataclass(frozen=True, slots=True)
class GlobalFlag:
    """A global flag.

    Attributes:
        names: such as `--write-out` and `-w`.
        help: what it does.
        is_switch: it takes no value.
        own_variable: the variable that it overrides; empty for the one that etcdctl would have.
    """

    names: tuple[str, ...]
    help: str
    is_switch: bool = False
    own_variable: str = ""

    @property
    def name(self) -> str:
        """The name that click gives it."""
        return self.names[0].removeprefix("--").replace("-", "_")

    @property
    def variable(self) -> str:
        """The variable that it overrides."""
        return self.own_variable or PREFIX + self.name.upper()


GLOBAL_FLAGS: Final = (
    GlobalFlag(
        ("--endpoints",), "client URLs of members or dns:///NAME:PORT, separated by commas; 127.0.0.1:2379 by default"
    ),
    GlobalFlag(("--context",), "name of the context that has the settings which are not given", own_variable=VARIABLE),
    GlobalFlag(("--write-out", "-w"), "output format: simple, fields, json, pretty-json, table, protobuf"),
    GlobalFlag(("--values",), "text, or json to parse values that are JSON, with --write-out=pretty-json"),
    GlobalFlag(("--hex",), "print keys, values and ids in hexadecimal", is_switch=True),
    GlobalFlag(("--debug",), "log to stderr", is_switch=True),
    GlobalFlag(("--dial-timeout",), "limit for connecting to an endpoint; 2s by default"),
    GlobalFlag(("--command-timeout",), "limit for a call; 5s by default"),
    GlobalFlag(("--keepalive-time",), "silence after which a connection is tested; at least 10s"),
    GlobalFlag(("--keepalive-timeout",), "limit for the answer to that test; 3s by default"),
    GlobalFlag(("--max-request-bytes",), "largest request in bytes; 2 MiB by default"),
    GlobalFlag(("--max-recv-bytes",), "largest reply in bytes; 64 MiB by default"),
    GlobalFlag(("--insecure-transport",), "=false requires TLS", is_switch=True),
    GlobalFlag(("--insecure-discovery",), "=false accepts only SRV records of members with TLS", is_switch=True),
    GlobalFlag(("--insecure-skip-tls-verify",), "do not verify certificates: only for tests", is_switch=True),
    GlobalFlag(("--cert",), "file of the client's certificate"),
    GlobalFlag(("--key",), "file of the client's key"),
    GlobalFlag(("--cacert",), "file of the certificates that servers are verified with"),
    GlobalFlag(("--user",), "name[:password]; asks for a password that is missing"),
    GlobalFlag(("--password",), "password of the user"),
    GlobalFlag(("--auth-jwt-token",), "token, instead of user and password"),
    GlobalFlag(("--proxy",), "URL of a proxy, or environment for HTTPS_PROXY and NO_PROXY", own_variable=PROXY),
    GlobalFlag(("--discovery-srv", "-d"), "domain whose SRV records name the members"),
    GlobalFlag(("--discovery-srv-name",), "name of the cluster in these records"),
)
"""The global flags: those of etcdctl, `--context` and `--values`."""

_OF_ENDPOINTS: Final = frozenset({"ENDPOINTS", "DISCOVERY_SRV", "DISCOVERY_SRV_NAME"})
_OF_USER: Final = frozenset({"USER", "PASSWORD", "AUTH_JWT_TOKEN"})


class ClientSettings:
    """The settings of the clients of one command.

    Args:
        flags: the global flags that were given, by name.
        environ: the variables of this process.
        ask: asks for a password; gets the prompt. None if there is no terminal.
        context: has the settings that are not given; None for none.
        options: more options of the clients.

    Attributes:
        options: the same.
    """

    def __init__(
        self,
        flags: Mapping[str, str],
        environ: Mapping[str, str],
        ask: Callable[[str], str] | None,
        context: Context | None = None,
        options: "ClientOptions | None" = None,
    ) -> None:
        by_variable = {flag.variable: flags[flag.name] for flag in GLOBAL_FLAGS if flag.name in flags}
        for name in ("cert", "key", "cacert"):
            if flags.get(name) == "":
                raise bad_arguments(f"empty string is passed to --{name} option")
        self._given = {flag.variable: flag.names[0] for flag in GLOBAL_FLAGS if flag.name in flags}
        given = {name: value for name, value in environ.items() if name.startswith(PREFIX) or name in _WITHOUT_PREFIX}
        given |= by_variable
        given.pop(VARIABLE, None)
        self._password_command = ""
        self._environ = given if context is None else self._from_context(context, given) | given
        self._ask = ask
        self.options: Final[ClientOptions] = options or {}
        if self._environ.get(f"{PREFIX}DISCOVERY_SRV"):
            self._environ.pop(f"{PREFIX}ENDPOINTS", None)  # etcdctl prefers the records, too

    def _from_context(self, context: Context, given: Mapping[str, str]) -> dict[str, str]:
        """The settings of a context as variables; without those of its place, or its user, if another one is given."""
        known = {flag.name for flag in GLOBAL_FLAGS} - {"context", "password", "auth_jwt_token"}
        unknown = context.settings.keys() - known - {PASSWORD_COMMAND}
        if unknown:
            raise bad_arguments(f"context {context.name!r} has an unknown setting: {min(unknown)}")
        left_out = {name for group in (_OF_ENDPOINTS, _OF_USER) for name in group if _has_any(given, group)}
        found = {
            PROXY if name == "proxy" else PREFIX + name.upper(): value
            for name, value in context.settings.items()
            if name != PASSWORD_COMMAND and name.upper() not in left_out
        }
        if f"{PREFIX}USER" in found:
            self._password_command = context.settings.get(PASSWORD_COMMAND, "")
        return found

    def setting(self, name: str, default: str = "") -> str:
        """The value of a global flag, such as `write_out`, or of its variable."""
        return self._environ.get(PREFIX + name.upper()) or default

    def switch(self, name: str) -> bool:
        """Whether a global switch is on."""
        return read_flag(f"--{name}", self.setting(name, "false"))

    def timeout_or(self, default: float | None) -> float | None:
        """The given seconds for a call, or the default of a verb whose calls may take longer than others."""
        return self.timeout if self.setting("command_timeout") else default

    @property
    def timeout(self) -> float:
        """Seconds for a call."""
        text = self.setting("command_timeout", "5s")
        variable = f"{PREFIX}COMMAND_TIMEOUT"
        from etcd_aio.config import read_option

        seconds = read_option("timeout", text, self._given.get(variable, variable))
        return float(seconds or 0.0)

    @property
    def endpoints(self) -> tuple[str, ...]:
        """The endpoints as they were given."""
        return tuple(one.strip() for one in self.setting("endpoints", _DEFAULT_ENDPOINT).split(","))

    @property
    def unknown_variables(self) -> tuple[str, ...]:
        """Variables that look as if they were etcdctl's."""
        known = {flag.variable for flag in GLOBAL_FLAGS} | {PREFIX + name for name in _OTHER_VARIABLES}
        known.add(RECONNECT_VARIABLE)
        return tuple(sorted(self._environ.keys() - known))

    def client(self, endpoint: str | None = None, *, observers: "Sequence[Observer]" = ()) -> "Client":
        """Make a client, of all endpoints or of one.

        Args:
            endpoint: the only one; None for all.
            observers: those of the client.

        Raises:
            Failure: a flag or a variable is invalid.
        """
        environ = dict(self._environ)
        if endpoint is not None:
            environ.pop(f"{PREFIX}DISCOVERY_SRV", None)
            environ[f"{PREFIX}ENDPOINTS"] = endpoint
        self._complete_user(environ)
        if self.setting("dial_timeout") in _NO_LIMIT:  # then the limit of the command is all that counts
            environ[f"{PREFIX}DIAL_TIMEOUT"] = f"{self.timeout}s"
        # Passwords go over connections without TLS, as those of etcdctl do.
        options: ClientOptions = {
            "allow_insecure_auth": True,
            "fail_fast": True,
            "observers": observers,
            **self.options,
        }
        try:
            if self.switch("insecure_skip_tls_verify"):
                options["tls"] = self._unverified()
                environ.pop(f"{PREFIX}INSECURE_SKIP_TLS_VERIFY", None)
            from etcd_aio import Client

            return Client.from_env(environ, **options)
        except ConfigError as error:
            raise bad_arguments(self._with_flags(error.message)) from None

    def _complete_user(self, environ: dict[str, str]) -> None:
        user = environ.get(f"{PREFIX}USER", "")
        if not user or ":" in user or environ.get(f"{PREFIX}PASSWORD") or environ.get(f"{PREFIX}AUTH_JWT_TOKEN"):
            return
        if self._password_command:
            password = _printed(self._password_command)
        elif self._ask is not None:
            password = self._ask("Password: ")
        else:
            raise bad_arguments("--user needs a password, and there is no terminal to ask for it")
        # Kept, so that a command with several clients asks once.
        self._environ[f"{PREFIX}PASSWORD"] = environ[f"{PREFIX}PASSWORD"] = password

    def _unverified(self) -> ssl.SSLContext:
        context = ssl.create_default_context()
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        if self.setting("cert"):
            try:
                context.load_cert_chain(self.setting("cert"), self.setting("key") or None)
            except (OSError, ssl.SSLError) as error:
                raise bad_arguments(f"--cert: {error}") from None
        return context

    def _with_flags(self, text: str) -> str:
        """An error of `Client.from_env`, with the names of the flags that were given."""
        for variable in sorted(self._given, key=len, reverse=True):
            text = text.replace(variable, self._given[variable])
        return text


def _has_any(given: Mapping[str, str], names: frozenset[str]) -> bool:
    return any(given.get(PREFIX + name) for name in names)


def _printed(command: str) -> str:
    """The first line that a command prints."""
    try:
        done = subprocess.run(shlex.split(command), stdout=subprocess.PIPE, text=True, check=True)  # noqa: S603
    except (OSError, ValueError, subprocess.CalledProcessError) as error:
        raise bad_arguments(f"{PASSWORD_COMMAND} of the context failed: {type(error).__name__}") from None
    password = done.stdout.partition("\n")[0]
    if not password:
        raise bad_arguments(f"{PASSWORD_COMMAND} of the context has printed nothing")
    return password


def terminal_prompt() -> Callable[[str], str] | None:
    """The password prompt, or None if stdin is not a terminal."""
    if not sys.stdin.isatty():
        return None
    return _ask


def _ask(prompt: str) -> str:
    from getpass import getpass

    try:
        return getpass(prompt)
    except EOFError:
        raise Failure(ExitCode.BAD_ARGUMENTS, "no password") from None
