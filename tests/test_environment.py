"""The page about environment variables has every variable that the library reads or hands on, and no other."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from etcd_aio.cli.connection import GLOBAL_FLAGS
from etcd_aio.config import PREFIX, environ

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "pages" / "reference" / "environment.md"
PACKAGES = ("etcd_aio", "pytest_etcd_aio")
VARIABLE = re.compile(r"_?(?:ETCD(?:CTL)?|PYTEST|OTEL|PYTHON|SSL|XDG)_[A-Z0-9_]+")
COMPUTED = re.compile(r"(ETCD_[A-Z_]+_) ([A-Z0-9_]*)")  # what `texts` makes of an f-string such as f"ETCD_A_{name}"
# Variables of other programs, which the page explains.
OF_OTHERS = {
    *("SSL_CERT_FILE", "SSL_CERT_DIR", "OTEL_PYTHON_DISABLED_INSTRUMENTATIONS", "PYTHONASYNCIODEBUG"),
    *("PYTHONDEVMODE", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"),
    "ETCD_AIO_ACCELERATOR",  # of the build, in hatch_build.py
    "ETCD3GW_API_PATH",
}
# The modules that touch the variables of the process; those of a module that is not here would be seen by no test.
READERS = {
    *("etcd_aio/client.py", "etcd_aio/cli/child.py", "etcd_aio/cli/completion.py", "etcd_aio/cli/session.py"),
    *("etcd_aio/cli/watch.py", "etcd_aio/cli/watch_command.py", "etcd_aio/base/accelerator.py"),
    *("etcd_aio/testing/binaries.py", "etcd_aio/testing/commands.py", "etcd_aio/testing/ports.py"),
    *("etcd_aio/testing/server.py", "etcd_aio/compat/etcd3gw/client.py", "pytest_etcd_aio/options.py"),
}


@cache
def modules() -> dict[str, str]:
    """The sources of the library by name, without the generated ones."""
    paths = {path.relative_to(ROOT).as_posix(): path for each in PACKAGES for path in (ROOT / each).rglob("*.py")}
    return {name: path.read_text(encoding="utf-8") for name, path in paths.items() if "/pb/" not in name}


def texts(tree: ast.Module) -> Iterator[str]:
    """The texts in a module, without docstrings; `PREFIX` in an f-string is replaced by its value."""
    docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    parts = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            parts |= {id(part) for part in node.values}
            yield "".join(
                str(part.value)
                if isinstance(part, ast.Constant)
                else PREFIX
                if isinstance(part, ast.FormattedValue) and ast.unparse(part.value) == "PREFIX"
                else " "
                for part in node.values
            )
    for node in ast.walk(tree):
        is_text = isinstance(node, ast.Constant) and isinstance(node.value, str)
        if is_text and id(node) not in docstrings | parts:
            yield str(ast.literal_eval(node))


@cache
def in_code() -> set[str]:
    """The variables that the library names: in full, behind `PREFIX`, or as the flags of the command line do."""
    found = {flag.variable for flag in GLOBAL_FLAGS}
    for name, source in modules().items():
        if not (VARIABLE.search(source) or "PREFIX" in source or '"CI"' in source):
            continue  # parsing all takes seconds
        for text in texts(ast.parse(source)):
            found |= set(VARIABLE.findall(text)) - {PREFIX}
            is_short = name in ("etcd_aio/config/environ.py", "etcd_aio/cli/connection.py")
            if is_short and re.fullmatch(r"(?!ETCDCTL)[A-Z]+(_[A-Z]+)*", text):
                found.add(PREFIX + text)
            if name == "pytest_etcd_aio/options.py" and text == "CI":
                found.add(text)
    return {name for name in found if not name.endswith("_")}


@cache
def computed() -> set[str]:
    """Patterns of the variables whose names the library puts together."""
    sources = [source for source in modules().values() if VARIABLE.search(source)]
    found = {match for source in sources for text in texts(ast.parse(source)) for match in COMPUTED.findall(text)}
    return {rf"{before}[A-Z]+{after}" for before, after in found}


def on_page() -> set[str]:
    """The variables on the page."""
    return set(re.findall(r"`(_?[A-Z][A-Z0-9_]*[A-Z0-9])`", PAGE.read_text(encoding="utf-8")))


def test_the_page_has_every_variable_of_the_code_and_no_other() -> None:
    named = {name for name in on_page() for pattern in computed() if re.fullmatch(pattern, name)}
    assert on_page() - OF_OTHERS - named == in_code() - OF_OTHERS - named
    assert [pattern for pattern in computed() if not any(re.fullmatch(pattern, name) for name in named)] == []


def test_those_of_other_programs_are_on_the_page() -> None:
    assert on_page() >= OF_OTHERS


def test_variables_are_found_in_every_form() -> None:
    assert len(in_code()) > 40
    assert {"ETCDCTL_ENDPOINTS", "ETCDCTL_WRITE_OUT", "ETCD_AIO_CACHE", "ETCD_LOCK_KEY", "CI"} <= in_code()
    forms = ast.parse('"""ETCD_IN_DOCSTRING"""\nPREFIX = "A"\nf"{PREFIX}USER is {x}"\nread("ETCD_AIO_CACHE")')
    assert sorted(texts(forms)) == ["A", "ETCDCTL_USER is  ", "ETCD_AIO_CACHE"]


def test_the_modules_that_touch_the_environment_are_known() -> None:
    reads = r"\bos\.(environ|getenv|environb|putenv)\b"
    assert {name for name, source in modules().items() if re.search(reads, source)} == READERS


def test_the_variables_of_the_client_have_their_argument_on_the_page() -> None:
    page = PAGE.read_text(encoding="utf-8")
    for short, option in environ._OPTIONS.items():
        assert re.search(rf"\| `{PREFIX}{short}` \| `{option}`", page), short
