"""The documentation is true: its blocks run and print what they say, its names exist, its tables are the code's."""

import builtins
import re
from collections.abc import Iterator
from pathlib import Path
from pkgutil import resolve_name
from typing import get_type_hints

import pytest
import trustme
from anyio.from_thread import start_blocking_portal

import etcd_aio
import etcd_aio.errors
import etcd_aio.testing
from etcd_aio import Client
from etcd_aio.testing import EtcdServer, ServerTLS
from tests.examples.blocks import blocks, python_blocks, read
from tests.examples.made import MADE, made, made_in
from tests.examples.paths import PAGES, ROOT, Run
from tests.examples.test_readme import console_lines, nox_sessions

README = ROOT / "README.md"
ALL = [README, ROOT / "docs" / "compatibility.md", *sorted(PAGES.rglob("*.md"))]
RUNNABLE = [page for page in ALL if python_blocks(read(page))]
COLUMNS = {README: 88}
PLACEHOLDER = "http://127.0.0.1:2379"
WITH_TLS = "https://127.0.0.1:2379"


def name(page: Path) -> str:
    return page.relative_to(ROOT).with_suffix("").as_posix()


@pytest.fixture
def own_server(page: Path, tmp_path: Path) -> Iterator[EtcdServer]:
    """A member for one page alone, so that its revisions are known; with TLS if the page speaks of it."""
    tls = certificates(tmp_path) if page.stem == "tls" else None
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(EtcdServer(tls=tls)) as server:
        yield server


def certificates(folder: Path) -> ServerTLS:
    """The files that the page about TLS names, and what its server needs."""
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
def test_its_python_blocks_run_and_print_what_they_say(page: Path, own_server: EtcdServer, run: Run) -> None:
    text = read(page)
    assert PLACEHOLDER in text or WITH_TLS in text or "Etcd" in text, "it dials something that no test controls"
    ports = "ports=(2379, 2380)", "ports=None"
    own = WITH_TLS if own_server.endpoint.startswith("https") else PLACEHOLDER
    run("-m", "tests.examples.page", str(page), own, own_server.endpoint, *ports)


@pytest.mark.parametrize("page", ALL, ids=name)
def test_no_block_escapes(page: Path) -> None:
    text = read(page)
    assert text.count("```") == 2 * len(blocks(text)), "a fence that is indented, or not closed"
    assert {block.language for block in blocks(text)} <= {"python", "console", "text", "yaml"}
    assert "~~~" not in text
    outside = re.sub(r"^```.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE)
    outside = re.sub(r"^::: .*\n(?: {4}.*\n)*", "", outside, flags=re.MULTILINE)
    assert not re.search(r"\n\n {4}", outside), "an indented block of code"


@pytest.mark.parametrize("page", ALL, ids=name)
def test_its_code_is_not_wider_than_a_screen(page: Path) -> None:
    for block in blocks(read(page)):
        for number, line in enumerate(block.code.splitlines(), start=block.line):
            assert len(line) <= COLUMNS.get(page, 80), f"{page}:{number}: {len(line)} columns"


SEARCHED = (
    *("retry", "timeout", "failover", "authentication", "password", "certificate", "mtls", "jwt", "namespace"),
    *("lock", "election", "increment", "compare and swap", "pagination", "bulk", "backpressure", "compaction"),
    *("readiness", "liveness", "health check", "logging", "metrics", "prometheus", "opentelemetry", "backup"),
    *("fastapi", "starlette", "aiohttp", "django", "celery", "jupyter", "gunicorn", "kubernetes", "docker", "sigterm"),
    *("pytest-asyncio", "fixture", "trio", "anyio", "uvloop", "windows", "macos", "idempotent", "hedging"),
)


@pytest.mark.parametrize("word", SEARCHED)
def test_what_readers_search_for_is_found(word: str) -> None:
    assert any(word in read(page).lower() for page in ALL if page != README)


def test_there_are_pages_to_run() -> None:
    assert len(RUNNABLE) >= 24
    assert sum(len(python_blocks(read(page))) for page in RUNNABLE) >= 120


@pytest.mark.parametrize("page", ALL, ids=name)
def test_its_commands_exist(page: Path) -> None:
    text = read(page)
    assert set(re.findall(r"nox -s (\w+)", text)) <= nox_sessions()
    for line in console_lines(text):
        assert re.match(r"pip install (nox|\"?\.)|nox -s \w+|python -m (asyncio|etcd_aio\.testing\.build)$", line), line


# --- what is made from the code ---


def test_all_that_is_made_has_its_page() -> None:
    found = [name for page in ALL for name in made_in(read(page))]
    assert sorted(found) == sorted(MADE)


@pytest.mark.parametrize("page", [page for page in ALL if made_in(read(page))], ids=name)
def test_what_is_made_says_what_the_code_says(page: Path) -> None:
    for what, said in made_in(read(page)).items():
        assert said == made(what), "`python -m tests.examples.made` writes it anew"


# --- names ---


def documented() -> set[str]:
    """What the reference is told to show."""
    pages = (PAGES / "reference").glob("*.md")
    return {name for page in pages for name in re.findall(r"^::: (\S+)$", read(page), re.MULTILINE)}


@pytest.mark.parametrize("door", [etcd_aio, etcd_aio.testing], ids=lambda door: str(door.__name__))
def test_every_public_name_is_in_the_reference(door: object) -> None:
    found = documented() | {"etcd_aio.op"}
    names = {f"{door.__name__}.{one}" for one in door.__all__}  # type: ignore[attr-defined]
    assert names - found == set()


@pytest.mark.parametrize("page", ALL, ids=name)
def test_the_errors_that_it_names_exist(page: Path) -> None:
    for found in re.findall(r"`(?:etcd_aio\.errors\.)?([A-Z]\w*Error)\b", read(page)):
        assert hasattr(etcd_aio.errors, found) or hasattr(builtins, found), found


@pytest.mark.parametrize("page", ALL, ids=name)
def test_the_calls_that_it_names_exist(page: Path) -> None:
    for found in re.findall(r"(?<![-\w])client((?:\.\w+)+)", re.sub(r"client\.(md|py)", "", read(page))):
        _, first, *rest = found.split(".")
        owner: object = Client
        for one in (first, *rest[:1]):
            assert hasattr(owner, one), f"client{found}"
            what = getattr(owner, one)
            if not isinstance(what, property):
                break
            hints = get_type_hints(what.fget)
            owner = hints["return"]


def test_every_example_is_in_the_list_of_examples() -> None:
    page = read(PAGES / "examples.md")
    for path in (ROOT / "examples").glob("*.py"):
        assert f"| `examples/{path.name}` |" in page


def test_what_the_reference_shows_exists() -> None:
    assert len(documented()) > 200
    for shown in documented():
        assert resolve_name(shown) is not None


@pytest.mark.parametrize("page", ALL, ids=name)
def test_the_files_that_it_names_exist(page: Path) -> None:
    outside = re.sub(r"^```.*?^```$", "", read(page), flags=re.DOTALL | re.MULTILINE)
    for found in re.findall(r"`((?:examples|docs|benchmarks|tests|etcd_aio)/[\w./]+)`", outside):
        assert (ROOT / found).exists(), found


def test_the_page_about_the_architecture_names_every_package_and_files_that_exist() -> None:
    page = read(PAGES / "explanation" / "architecture.md")
    for package in (path.parent.name for path in (ROOT / "etcd_aio").glob("*/__init__.py")):
        assert f"{package}/" in page or package == "testing"
    named = re.findall(r"`((?:\w+/)?\w+\.py)`", page)
    assert len(named) > 15
    roots = (ROOT / "etcd_aio", ROOT)
    assert [name for name in named if not any((root / name).exists() for root in roots)] == []
