"""The documentation matches the code: blocks run and print what the page shows, names exist, tables are up to date."""

import builtins
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from pkgutil import resolve_name
from typing import get_type_hints

import pytest
import trustme
from anyio.from_thread import start_blocking_portal

import etcd_aio
import etcd_aio.errors
import etcd_aio.fake.time
import etcd_aio.testing
from etcd_aio import Client, admin
from etcd_aio.calls import KeyCalls
from etcd_aio.sync import Client as SyncClient
from etcd_aio.testing import EtcdServer, ServerTLS
from release import api
from release.public import INTERNAL, PUBLIC
from tests.examples.blocks import blocks, python_blocks, read
from tests.examples.made import MADE, made, made_in
from tests.examples.paths import PAGES, ROOT, Run
from tests.examples.test_readme import console_lines, nox_sessions

README = ROOT / "README.md"
ALL = [README, *sorted(PAGES.rglob("*.md"))]
RUNNABLE = [page for page in ALL if any(block.file is None for block in python_blocks(read(page)))]
COLUMNS = {README: 88}
PLACEHOLDER = "http://127.0.0.1:2379"
WITH_TLS = "https://127.0.0.1:2379"


@cache
def public_names() -> dict[str, str]:
    return api.public_names()


def name(page: Path) -> str:
    return page.relative_to(ROOT).with_suffix("").as_posix()


@pytest.fixture
def own_server(page: Path, tmp_path: Path) -> Iterator[EtcdServer]:
    """A new member for one page, so that its revisions are known; with TLS for the page about TLS."""
    tls = certificates(tmp_path) if page.stem == "tls" else None
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(EtcdServer(tls=tls)) as server:
        yield server


def certificates(folder: Path) -> ServerTLS:
    """Make the certificates that the page about TLS names, and those of its server."""
    authority = trustme.CA()
    authority.cert_pem.write_to_path(folder / "ca.pem")
    for name in ("server", "own"):
        issued = authority.issue_cert("127.0.0.1", "localhost")
        for part in issued.cert_chain_pems:
            part.write_to_path(folder / f"{name}.pem", append=True)
        issued.private_key_pem.write_to_path(folder / f"{name}.key")
        (folder / f"{name}.key").chmod(0o600)
    return ServerTLS(folder / "server.pem", folder / "server.key", client_ca=folder / "ca.pem")


@pytest.mark.cluster
@pytest.mark.parametrize("page", RUNNABLE, ids=name)
def test_python_blocks_run_and_print_the_output_on_the_page(page: Path, own_server: EtcdServer, run: Run) -> None:
    text = read(page)
    assert PLACEHOLDER in text or WITH_TLS in text or "Etcd" in text, "it connects to a server that no test controls"
    ports = "ports=(2379, 2380)", "ports=None"
    own = WITH_TLS if own_server.endpoint.startswith("https") else PLACEHOLDER
    port = "port=2379", f"port={own_server.endpoint.rpartition(':')[2]}"
    run("-m", "tests.examples.page", str(page), own, own_server.endpoint, *ports, *port)


@pytest.mark.parametrize("page", ALL, ids=name)
def test_every_block_of_code_is_found(page: Path) -> None:
    text = read(page)
    assert text.count("```") == 2 * len(blocks(text)), "a fence is indented or not closed"
    assert {block.language for block in blocks(text)} <= {"python", "py", "console", "text", "yaml", "json"}
    assert "~~~" not in text
    outside = re.sub(r"^```.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE)
    outside = re.sub(r"^::: .*\n(?: {4}.*\n)*", "", outside, flags=re.MULTILINE)
    assert not re.search(r"\n\n {4}", outside), "an indented block of code"


@pytest.mark.parametrize("page", ALL, ids=name)
def test_code_fits_on_the_page(page: Path) -> None:
    for block in blocks(read(page)):
        for number, line in enumerate(block.code.splitlines(), start=block.line):
            assert len(line) <= COLUMNS.get(page, 80), f"{page}:{number}: {len(line)} columns"


SEARCHED = (
    *("retry", "timeout", "failover", "authentication", "password", "certificate", "mtls", "jwt", "namespace"),
    *("lock", "election", "increment", "compare and swap", "pagination", "bulk", "backpressure", "compaction"),
    *("readiness", "liveness", "health check", "logging", "metrics", "prometheus", "opentelemetry", "backup"),
    *("fastapi", "starlette", "aiohttp", "django", "celery", "jupyter", "gunicorn", "kubernetes", "docker", "sigterm"),
    *("pytest-asyncio", "fixture", "trio", "anyio", "uvloop", "windows", "macos", "idempotent", "hedging"),
    *("clientv3", "jetcd", "python-etcd3", "healthcheck", "maybe_applied", "too many calls", "graceful shutdown"),
    *("etcd3gw", "aetcd", "flask", "blocking", "ctrl-c", "keyboardinterrupt", "multiprocessing"),
    *("openstack", "torchrun", "rendezvous", "elastic"),
)


@pytest.mark.parametrize("word", SEARCHED)
def test_the_words_that_readers_search_for_are_on_a_page(word: str) -> None:
    assert any(word in read(page).lower() for page in ALL if page != README)


def test_there_are_pages_and_blocks_to_run() -> None:
    assert len(RUNNABLE) >= 24
    assert sum(len(python_blocks(read(page))) for page in RUNNABLE) >= 120
    assert [page.stem for page in ALL if any(block.file is not None for block in python_blocks(read(page)))] == [
        "flask-django-celery",  # run by tests/contrib/test_sync_page.py
        "http-and-grpc-clients",  # run by tests/contrib/test_discovery_page.py
        "live-configuration",  # run by tests/contrib/test_web_page.py
        "telemetry",  # run by tests/contrib/test_otel_page.py
        "testing",  # run by test_testing_page.py
        "tooz",  # run by tests/contrib/test_tooz_page.py
        "web-frameworks",  # run by tests/contrib/test_web_page.py
    ]


COMMANDS = (
    r"pip install (nox|\"?\.)|nox -s [\w-]+|python -m (asyncio|etcd_aio\.testing\.build)$|pytest --etcd-|"
    r"python -m etcd_aio\.compat \w+ -- |torchrun --|python -m etcd_aio\.contrib\.torch --|"
    r"python -m etcd_aio\.contrib\.patroni install$|"
    r"etcd-aio \S|etcdctl put|printf .* \| etcdctl txn$|source <\(etcd-aio completion"
)


@pytest.mark.parametrize("page", ALL, ids=name)
def test_the_commands_on_a_page_exist(page: Path) -> None:
    text = read(page)
    assert set(re.findall(r"nox -s ([\w-]+)", text)) <= nox_sessions()
    for line in console_lines(text):
        assert re.match(COMMANDS, line), line


# --- generated parts ---


def test_every_generated_part_is_on_one_page() -> None:
    names = [name for page in ALL for name in made_in(read(page))]
    assert sorted(names) == sorted(MADE)


@pytest.mark.parametrize("page", [page for page in ALL if made_in(read(page))], ids=name)
def test_generated_parts_are_up_to_date(page: Path) -> None:
    for part, text in made_in(read(page)).items():
        assert text == made(part), "run `python -m tests.examples.made`"


# --- names ---


def documented() -> set[str]:
    """The names that the reference shows."""
    pages = (PAGES / "reference").glob("*.md")
    return {name for page in pages for name in re.findall(r"^::: (\S+)$", read(page), re.MULTILINE)}


def test_every_public_name_is_in_the_reference_and_nothing_internal() -> None:
    shown = documented()
    elsewhere = "etcd_aio.errors.", "pytest_etcd_aio."  # by generated pages, which other tests compare
    assert [name for name in api.undocumented(public_names(), shown) if not name.startswith(elsewhere)] == []
    assert shown & INTERNAL == set()


IMPORT = re.compile(r"^ *from (etcd_aio[\w.]*) import (?:\(([^)]*)\)|(.*))$", re.MULTILINE)


def imported(text: str) -> set[str]:
    """The names that a page imports from the project, and those that it takes from modules that it imports."""
    names = {
        f"{module}.{name.split(' as ')[0].strip()}"
        for module, lines, line in IMPORT.findall(text)
        for name in (lines or line).split("#")[0].split(",")
        if name.strip()
    }
    for module in names & PUBLIC.keys():
        names |= {f"{module}.{name}" for name in re.findall(rf"\b{module.split('.')[-1]}\.(\w+)\(", text)}
    return names


@pytest.mark.parametrize("page", [*ALL, *sorted((ROOT / "examples").rglob("*.py"))], ids=name)
def test_what_a_page_or_an_example_imports_is_public(page: Path) -> None:
    assert imported(read(page)) - public_names().keys() - PUBLIC.keys() == set()


@pytest.mark.parametrize("page", ALL, ids=name)
def test_the_errors_on_a_page_exist(page: Path) -> None:
    for error in re.findall(r"`(?:etcd_aio\.errors\.)?([A-Z]\w*Error)\b", read(page)):
        assert any(hasattr(module, error) for module in (etcd_aio.errors, etcd_aio.fake.time, builtins)), error


@pytest.mark.parametrize("page", ALL, ids=name)
def test_the_calls_on_a_page_exist(page: Path) -> None:
    names = {name: getattr(package, name) for package in (admin, etcd_aio) for name in vars(package)["__all__"]}
    text = re.sub(r"client\.(md|py)|(rpc|etcd_aio)\.client\.", "", read(page))  # files, and names of metrics
    for call in re.findall(r"(?<![-\w])client((?:\.\w+)+)", text):
        _, first, *rest = call.split(".")
        value = getattr(Client, first, KeyCalls.__annotations__.get(first, getattr(SyncClient, first, None)))
        assert value is not None, f"client{call}"
        if rest and isinstance(value, property):
            assert hasattr(get_type_hints(value.fget, localns=names)["return"], rest[0]), f"client{call}"


def test_the_page_about_logging_has_every_logger() -> None:
    sources = (ROOT / "etcd_aio").rglob("*.py")
    loggers = {found for path in sources for found in re.findall(r'getLogger\("(etcd_aio\.\w+)"\)', read(path))}
    assert loggers == set(re.findall(r"^\| `(etcd_aio\.\w+)` \|", read(PAGES / "how-to" / "logging.md"), re.MULTILINE))


def test_the_menu_has_every_page_once() -> None:
    listed = re.findall(r"^ +- (?:\w+: )?([\w/-]+\.md)$", read(ROOT / "docs" / "mkdocs.yml"), re.MULTILINE)
    pages = [page.relative_to(PAGES).as_posix() for page in PAGES.rglob("*.md")]
    assert sorted(listed) == sorted([*pages, "changelog.md"])  # which is elsewhere


def links_of(page: Path) -> Iterator[tuple[Path, str]]:
    """The files of the project that a page links, each with its anchor."""
    for target, anchor in re.findall(r"\]\(([\w./-]*)(?:#([^)\s]+))?\)", _BLOCK.sub("", read(page))):
        yield (page.parent / target if target else page), anchor


@pytest.mark.parametrize("page", ALL, ids=name)
def test_the_pages_can_be_read_in_the_repository(page: Path) -> None:
    """The README leads there. The change log and pictures are where the site is built only."""
    linked = {path for path, _ in links_of(page) if path.suffix == ".md" and path.name != "changelog.md"}
    assert {str(path) for path in linked if not path.exists()} == set()


@pytest.mark.parametrize("page", [README, ROOT / "CONTRIBUTING.md"], ids=name)
def test_the_links_outside_of_the_site_lead_to_files_and_headings(page: Path) -> None:
    """Those inside are checked where the site is built."""
    for path, anchor in links_of(page):
        assert path.exists(), path
        headings = re.findall(r"^#+ (.+)$", read(path), re.MULTILINE) if anchor else []
        assert not anchor or anchor in {re.sub(r"[^\w-]", "", head.lower().replace(" ", "-")) for head in headings}


def test_every_example_is_in_the_list_of_examples() -> None:
    page = read(PAGES / "examples.md")
    for path in (ROOT / "examples").glob("*.py"):
        assert f"| `examples/{path.name}` |" in page


def test_what_the_reference_shows_exists() -> None:
    assert len(documented()) > 200
    for shown in documented() - public_names().keys():  # those are read from the sources, also without their frameworks
        assert resolve_name(shown) is not None


@pytest.mark.parametrize("page", ALL, ids=name)
def test_the_files_on_a_page_exist(page: Path) -> None:
    outside = re.sub(r"^```.*?^```$", "", read(page), flags=re.DOTALL | re.MULTILINE)
    for path in re.findall(r"`((?:examples|docs|benchmarks|tests|etcd_aio|pytest_etcd_aio)/[\w./]+)`", outside):
        assert (ROOT / path).exists(), path


def test_the_page_about_the_architecture_names_every_package_and_files_that_exist() -> None:
    page = read(PAGES / "explanation" / "architecture.md")
    for package in (path.parent.name for path in (ROOT / "etcd_aio").glob("*/__init__.py")):
        assert f"{package}/" in page or package == "testing"
    named = re.findall(r"`((?:\w+/)?\w+\.py)`", page)
    assert len(named) > 15
    roots = (ROOT / "etcd_aio", ROOT)
    assert [name for name in named if not any((root / name).exists() for root in roots)] == []


_GUIDES = sorted((PAGES / "how-to").glob("*.md"))
_IMPORTED = re.compile(r"from etcd_aio\.errors import (?:\(([^)]*)\)|([^\n(]+))")
_CODE = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
_BLOCK = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("page", _GUIDES, ids=lambda page: page.stem)
def test_a_guide_says_where_each_error_is_that_is_not_in_the_package_itself(page: Path) -> None:
    """By an import, by the first name in full, or by a sentence about all of the page."""
    text = read(page)
    prose, code = _BLOCK.sub("", text), "\n".join(_CODE.findall(text))
    if "in `etcd_aio.errors`" in prose:
        return
    words = re.findall(r"(?:etcd_aio\.errors\.)?\b[A-Z]\w+", f"{' '.join(re.findall(r'`[^`]+`', prose))} {code}")
    elsewhere = [word for word in words if word.split(".")[-1] in _ERRORS_ELSEWHERE]
    told = {name for found in _IMPORTED.findall(text) for name in re.findall(r"\w+", "".join(found))}
    told |= {word.split(".")[-1] for word in elsewhere if "." in word}
    assert sorted({word.split(".")[-1] for word in elsewhere} - told) == []


_ERRORS_ELSEWHERE = {
    name
    for name, value in vars(etcd_aio.errors).items()
    if isinstance(value, type) and issubclass(value, Exception) and not hasattr(etcd_aio, name)
}
