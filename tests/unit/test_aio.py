"""Tasks: whoever starts one has stored it before it runs, and nothing in the package starts one in another way."""

import ast
import asyncio
import sys
from collections.abc import Callable
from contextvars import ContextVar
from pathlib import Path

import pytest

from etcd_aio.aio import start_background_task, start_task
from tests.support.virtual_time import VirtualTimeLoop

pytestmark = pytest.mark.anyio

PACKAGE = Path(__file__).parents[2] / "etcd_aio"
REQUEST: ContextVar[str] = ContextVar("REQUEST", default="none")


@pytest.fixture
def anyio_backend() -> tuple[str, dict[str, object]]:
    return "asyncio", {"loop_factory": VirtualTimeLoop}


def set_eager() -> None:
    if sys.version_info < (3, 12):
        pytest.skip("asyncio.eager_task_factory came with Python 3.12")
    asyncio.get_running_loop().set_task_factory(asyncio.eager_task_factory)


@pytest.mark.parametrize("start", [start_task, start_background_task])
@pytest.mark.parametrize("prepare", [lambda: None, set_eager], ids=["usual", "eager"])
async def test_a_task_does_not_run_before_its_owner_has_it(
    start: "Callable[..., asyncio.Task[None]]", prepare: Callable[[], None]
) -> None:
    prepare()
    owned: list[asyncio.Task[None] | None] = []

    async def work() -> None:
        owned.clear()

    task = start(work(), name="etcd_aio test")
    owned.append(task)
    assert task.get_name() == "etcd_aio test"
    await task
    assert not owned


async def test_only_a_background_task_forgets_for_which_request_it_was_started() -> None:
    REQUEST.set("one")

    async def work() -> str:
        return REQUEST.get()

    assert await start_task(work(), name="etcd_aio test") == "one"
    assert await start_background_task(work(), name="etcd_aio test") == "none"


def calls_of(path: Path) -> list[ast.Call]:
    return [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)]


def name_of(call: ast.Call) -> str:
    return ast.unparse(call.func)


def groups_of(path: Path) -> set[str]:
    """What the task groups of a file are called."""
    return {
        ast.unparse(item.optional_vars)
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.AsyncWith)
        for item in node.items
        if item.optional_vars is not None and ast.unparse(item.context_expr) == "asyncio.TaskGroup()"
    }


@pytest.mark.parametrize("path", sorted(PACKAGE.rglob("*.py")), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_every_task_is_started_here(path: Path) -> None:
    if path == PACKAGE / "aio.py":
        return
    groups = groups_of(path)  # a group owns its tasks itself
    for call in calls_of(path):
        owner, _, name = name_of(call).rpartition(".")
        assert name not in {"create_task", "ensure_future"} or owner in groups, f"{path.name}:{call.lineno}"
        assert (owner, name) != ("asyncio", "Task"), f"{path.name}:{call.lineno}"
        if name in {"start_task", "start_background_task"}:
            assert any(keyword.arg == "name" for keyword in call.keywords), f"{path.name}:{call.lineno}"
