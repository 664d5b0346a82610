"""The client of a test belongs to the loop of the test, whichever plugin runs it."""

import itertools
from collections.abc import Iterable, Sequence

import pytest
from _pytest.mark import ParameterSet

from tests.support.suites import Project

pytestmark = pytest.mark.cluster

# Async fixtures that depend on the client use it when they are torn down: it is still open then.
ANYIO = """
import pytest
from etcd_aio import Client

{backend}

@pytest.fixture
async def dependent(etcd_client):
    await etcd_client.put("set-up", "1")
    yield etcd_client
    assert (await etcd_client.get("set-up")).text() == "1"

async def check(client, dependent, namespace, endpoints):
    assert dependent is client
    assert (await client.range(all_keys=True)).revision > 0
    await client.put("key", "1")
    async with Client(endpoints) as other:
        assert (await other.get(namespace + "key")).text() == "1"

{mark}
async def test_function(etcd_client, dependent, etcd_namespace, etcd_endpoints):
    assert await etcd_client.get("key") is None
    await check(etcd_client, dependent, etcd_namespace, etcd_endpoints)

{mark}
async def test_another(dependent, etcd_client, etcd_namespace, etcd_endpoints):
    assert await etcd_client.get("key") is None
    await check(etcd_client, dependent, etcd_namespace, etcd_endpoints)

{mark}
class TestClass:
    async def test_method(self, etcd_client, dependent, etcd_namespace, etcd_endpoints):
        await check(etcd_client, dependent, etcd_namespace, etcd_endpoints)

    async def test_any(self, etcd_any):
        await etcd_any.put("a", "1")

    async def test_fake(self, fake_client, fake_etcd):
        await fake_client.put("a", "1")
        assert fake_etcd.keys() == {{b"a": b"1"}}
"""
BACKENDS = {
    "default": "",
    "function": '@pytest.fixture\ndef anyio_backend(): return "asyncio"',
    "module": '@pytest.fixture(scope="module")\ndef anyio_backend(): return "asyncio"',
    "session": '@pytest.fixture(scope="session")\ndef anyio_backend(): return "asyncio"',
}
NOTHING_IS_LEFT = """
import asyncio
import pytest
from etcd_aio import Client

@pytest.fixture(scope="session", autouse=True)
def nothing_is_left(etcd_server):
    yield
    async def look():
        async with Client(etcd_server.endpoint) as client:
            return len(await client.range(all_keys=True)), (await client.leases.list()).ids
    assert asyncio.run(look()) == (0, ())
"""


ALONE: tuple[str, ...] = ()
PARALLEL = ("-p", "xdist", "-n", "3")
# All combinations are for `--nightly`.
ANYIO_RUNS = [(backend, parallel) for backend in BACKENDS for parallel in (ALONE, PARALLEL)]
SOME_ANYIO_RUNS = [("default", ALONE), ("session", PARALLEL)]


def runs(everything: Iterable[tuple[object, ...]], some: Sequence[tuple[object, ...]]) -> list[ParameterSet]:
    found = []
    for run in everything:
        *words, parallel = run
        name = "-".join([*map(str, words), "parallel" if parallel else "alone"])
        found.append(pytest.param(*run, id=name, marks=[] if run in some else [pytest.mark.nightly]))
    return found


@pytest.mark.parametrize(("backend", "parallel"), runs(ANYIO_RUNS, SOME_ANYIO_RUNS))
def test_anyio(project: Project, backend: str, parallel: tuple[str, ...]) -> None:
    project.write("conftest.py", NOTHING_IS_LEFT)
    project.write("test_it.py", ANYIO.format(backend=BACKENDS[backend], mark="@pytest.mark.anyio"))
    done = project.run(*parallel, runner="anyio")
    assert done.code == 0, done.text
    assert done.counts == {"passed": 6}
    assert project.servers() == []
    assert project.leftovers() == []


ASYNCIO = """
import pytest
import pytest_asyncio
from etcd_aio import Client

loops = set()

@pytest_asyncio.fixture(loop_scope="{scope}")
async def dependent(etcd_client):
    await etcd_client.put("set-up", "1")
    yield etcd_client
    assert (await etcd_client.get("set-up")).text() == "1"

{mark}
async def test_function(etcd_client, dependent, etcd_namespace, etcd_endpoints):
    assert await etcd_client.get("key") is None
    await etcd_client.put("key", "1")
    async with Client(etcd_endpoints) as other:
        assert (await other.get(etcd_namespace + "key")).text() == "1"

{mark}
class TestClass:
    async def test_first(self, dependent, etcd_client):
        assert dependent is etcd_client
        assert await etcd_client.get("key") is None
        await etcd_client.put("key", "1")

    async def test_second(self, dependent, etcd_client):
        assert await etcd_client.get("key") is None
        await etcd_client.put("key", "1")

    async def test_any(self, etcd_any):
        await etcd_any.put("a", "1")

    async def test_fake(self, fake_client, fake_etcd):
        await fake_client.put("a", "1")
        assert fake_etcd.keys() == {{b"a": b"1"}}
"""
SCOPES = ("function", "class", "module", "package", "session")


ASYNCIO_RUNS = list(itertools.product(["strict", "auto"], SCOPES, [ALONE, PARALLEL]))
SOME_ASYNCIO_RUNS = [
    ("strict", "function", ALONE),
    ("auto", "class", ALONE),
    ("strict", "session", PARALLEL),
]


@pytest.mark.parametrize(("mode", "scope", "parallel"), runs(ASYNCIO_RUNS, SOME_ASYNCIO_RUNS))
def test_pytest_asyncio(project: Project, mode: str, scope: str, parallel: tuple[str, ...]) -> None:
    # A function outside of a class has no loop of a class.
    mark = f'@pytest.mark.asyncio(loop_scope="{scope}")'
    text = ASYNCIO.format(scope=scope, mark=mark)
    if scope == "class":
        text = text.replace(f"{mark}\nasync def test_function", "async def helper")
    project.write("conftest.py", NOTHING_IS_LEFT)
    project.write("__init__.py", "")
    project.write("test_it.py", text)
    done = project.run(*parallel, runner=mode)
    assert done.code == 0, done.text
    assert done.counts == {"passed": 5 if scope == "class" else 6}
    assert project.servers() == []
    assert project.leftovers() == []


@pytest.mark.parametrize("scope", ["session", pytest.param("module", marks=pytest.mark.nightly)])
def test_the_scope_of_loops_may_come_from_the_configuration(project: Project, scope: str) -> None:
    project.write("test_it.py", "async def test_it(etcd_client):\n    await etcd_client.put('a', '1')\n")
    done = project.run("-o", f"asyncio_default_test_loop_scope={scope}", runner="auto")
    assert done.counts == {"passed": 1}, done.text


def test_pytest_asyncio_may_be_named_by_its_module(project: Project) -> None:
    """As is usual where plugins are not loaded by themselves."""
    project.write(
        "test_it.py",
        """
        import pytest

        @pytest.mark.asyncio
        async def test_it(fake_client):
            await fake_client.put("a", "1")
        """,
    )
    done = project.run(runner="by module")
    assert done.counts == {"passed": 1}, done.text


def test_both_plugins_at_once(project: Project) -> None:
    project.write(
        "test_it.py",
        """
        import pytest

        @pytest.mark.anyio
        @pytest.mark.parametrize("anyio_backend", ["asyncio"])
        async def test_anyio(etcd_client, anyio_backend):
            await etcd_client.put("a", "1")

        @pytest.mark.asyncio
        async def test_asyncio(etcd_client):
            assert await etcd_client.get("a") is None
        """,
    )
    done = project.run(runner="both")
    assert done.counts == {"passed": 2}, done.text


MISTAKES = {
    "sync": ("strict", "", "def test_it(etcd_client): pass", "etcd_client needs an async test"),
    "sync fake": ("strict", "", "def test_it(fake_client): pass", "fake_client needs an async test"),
    "no mark": ("strict", "", "async def test_it(etcd_client): pass", "etcd_client needs a runner"),
    "no plugin": ("none", "", "async def test_it(etcd_client): pass", "etcd_client needs a runner"),
    "anyio in auto mode": (
        "both",
        "asyncio_mode=auto",
        "import pytest\n\n@pytest.mark.anyio\nasync def test_it(etcd_client): pass",
        "remove `asyncio_mode = auto` from the configuration of pytest",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_test_that_has_no_loop_for_a_client_is_told_so_in_one_line(project: Project, mistake: str) -> None:
    runner, option, text, message = MISTAKES[mistake]
    project.write("test_it.py", text)
    done = project.run(*(("-o", option) if option else ()), runner=runner)
    assert done.counts == {"error": 1}, done.text
    (line,) = [line for line in done.text.splitlines() if message in line and not line.startswith("ERROR")]
    assert "pytest_etcd_aio" not in done.text.replace("plugins: ", ""), "a traceback of the plugin"
    assert len(line) < 250


def test_trio_is_skipped(project: Project) -> None:
    project.write(
        "test_it.py",
        """
        import pytest

        @pytest.fixture
        def anyio_backend():
            return "trio"

        @pytest.mark.anyio
        async def test_it(etcd_client): pass
        """,
    )
    done = project.run("-rs", runner="anyio")
    assert done.counts == {"skipped": 1}, done.text
    assert "etcd_aio runs on asyncio only" in done.text
