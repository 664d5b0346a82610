"""The options of the plugin: from the command line, else from the environment, else from the ini file."""

import os
from collections.abc import Mapping
from typing import Final, NamedTuple

import pytest

# The name of an option, its metavar (None for a flag), its help, and its variable.
OPTIONS: Final = (
    (
        "endpoints",
        "LIST",
        "use this server instead of starting one, and only keys of a namespace: comma-separated endpoints, or a URL as "
        "Client.from_url takes it",
        "ETCD_AIO_TEST_ENDPOINTS",
    ),
    ("bin", "PATH", "the etcd binary to start", "ETCD_AIO_TEST_ETCD"),
    ("version", "VERSION", "the etcd to start, such as 3.6 or '>=3.5,<3.7'", "ETCD_AIO_TEST_VERSION"),
    ("keep", None, "leave the data of the servers if a test failed, and report where it is", "ETCD_AIO_TEST_KEEP"),
    (
        "required",
        None,
        "fail if there is no etcd, instead of skipping; the default is yes if $CI is true",
        "ETCD_AIO_TEST_REQUIRED",
    ),
)
_TRUE: Final = frozenset({"1", "true", "yes", "on"})
_FALSE: Final = frozenset({"0", "false", "no", "off"})


class Options(NamedTuple):
    """The options of a run.

    Attributes:
        endpoints: the server to use, as the user wrote it; empty to start servers.
        binary: the binary to start; empty to search for one.
        version: the version of servers whose test names none; empty for any.
        keep: leave the data of servers if a test failed.
        required: a server that is missing fails the tests that need it.
    """

    endpoints: str = ""
    binary: str = ""
    version: str = ""
    keep: bool = False
    required: bool = False


def add_options(parser: pytest.Parser) -> None:
    """Declare the options and their ini keys."""
    group = parser.getgroup("etcd", "etcd (pytest_etcd_aio)")
    for name, metavar, text, variable in OPTIONS:
        described = f"{text} (ini: etcd_{name}; environment: {variable})"
        if metavar is None:
            group.addoption(f"--etcd-{name}", dest=f"etcd_{name}", action="store_true", default=None, help=described)
        else:
            group.addoption(f"--etcd-{name}", dest=f"etcd_{name}", metavar=metavar, default=None, help=described)
        parser.addini(f"etcd_{name}", help=f"as --etcd-{name}", default="")


def read_options(config: pytest.Config, environ: Mapping[str, str] = os.environ) -> Options:
    """Read the options.

    Raises:
        pytest.UsageError: a flag is neither true nor false.
    """
    found: dict[str, str] = {}
    for name, _, _, variable in OPTIONS:
        given = config.getoption(f"etcd_{name}")
        found[name] = str(given if given is not None else environ.get(variable) or config.getini(f"etcd_{name}"))
    is_ci = environ.get("CI", "").lower() in _TRUE
    return Options(
        endpoints=found["endpoints"],
        binary=found["bin"],
        version=found["version"],
        keep=_flag("keep", found["keep"], otherwise=False),
        required=_flag("required", found["required"], otherwise=is_ci),
    )


def _flag(name: str, text: str, *, otherwise: bool) -> bool:
    if not text:
        return otherwise
    if text.lower() not in _TRUE | _FALSE:
        raise pytest.UsageError(f"etcd_{name} is true or false, not {text!r}")
    return text.lower() in _TRUE
