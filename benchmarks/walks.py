"""Counts the Python calls of a put and of a watch event: `python -m benchmarks.walks`.

Two walks through the package are measured, on a real etcd, with the native engine on asyncio's own loop:

- `put`: from the call of `Client.put` to the call of the socket transport's `write`;
- `event`: from the `data_received` that carries an event to the event in the hands of the task that awaits
  `anext(watcher)`, which is one step of `async for event in watcher`.

Method. `sys.setprofile` reports each Python function that starts and each coroutine that resumes. Only those of
`etcd_aio` are counted, with the functions that the package generates: the codec's, which count for `codec/compiled`,
and the methods of dataclasses, which count for the module of the class. asyncio and functions written in C are left
out. `calls` are the functions that start; `resumed` are the coroutines that go on after an await, which costs less than
a call. Comprehensions do not count, since newer Pythons have no functions for them. `files` are the distinct modules of
both.

The codec compiles its functions at their first use, so each walk is repeated and the shortest one is shown: a timer
that happens to be due is not part of a walk. Another thread, which is not profiled, writes the events.
"""

import argparse
import asyncio
import dis
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import CodeType, FrameType
from typing import Final, TypeAlias

import etcd_aio
from etcd_aio import Client
from etcd_aio.testing import EtcdServer

_PACKAGE: Final = Path(etcd_aio.__file__).parent
_KEY: Final = "benchmarks/walks"
_ROUNDS: Final = 5
_COMPREHENSIONS: Final = frozenset({"<listcomp>", "<dictcomp>", "<setcomp>", "<genexpr>"})
_GENERATED_BY_CODEC: Final = "<etcd_aio "


@dataclass(frozen=True, slots=True)
class Step:
    """One function that starts or resumes.

    Attributes:
        module: its path within the package, without the suffix.
        function: its qualified name.
        is_resumed: it is a coroutine that goes on after an await.
    """

    module: str
    function: str
    is_resumed: bool

    @property
    def package(self) -> str:
        """The package that the function belongs to, or the module of the root."""
        return self.module.split("/")[0]


Walk: TypeAlias = tuple[Step, ...]


class Recorder:
    """Records one walk; to be installed by `sys.setprofile`.

    Args:
        begins: whether the walk begins with a call of this function. Another such call begins it again.
        ends: whether the walk is over when this function is called.
    """

    def __init__(self, begins: Callable[[CodeType], bool], ends: Callable[[CodeType], bool]) -> None:
        self._begins = begins
        self._ends = ends
        self._steps: list[Step] = []
        self._is_over = False

    @property
    def walk(self) -> Walk:
        """The steps of the walk."""
        return tuple(self._steps)

    def __call__(self, frame: FrameType, event: str, _argument: object) -> None:
        code = frame.f_code
        if event != "call" or self._is_over or code.co_name in _COMPREHENSIONS:
            return
        has_begun = self._begins(code)
        if has_begun:
            self._steps.clear()
        elif not self._steps:
            return
        elif self._ends(code):
            self._is_over = True
            return
        module = _module_of(frame)
        if module is not None:
            name = code.co_name if code.co_qualname.startswith("__create_fn__") else code.co_qualname
            self._steps.append(Step(module, name, frame.f_lasti > _start_of(code)))


@cache
def _start_of(code: CodeType) -> int:
    """The offset at which the body of a function begins; a coroutine that resumes is behind it."""
    return next(instruction.offset for instruction in dis.get_instructions(code) if instruction.opname == "RESUME")


def _module_of(frame: FrameType) -> str | None:
    """The module that a function belongs to; None if it is not of the package."""
    file = frame.f_code.co_filename
    if file.startswith(_GENERATED_BY_CODEC):
        return "codec/compiled"
    if file.startswith("<"):
        package, _, module = str(frame.f_globals.get("__name__", "")).partition(".")
        return module.replace(".", "/") if package == _PACKAGE.name else None
    path = Path(file)
    return path.relative_to(_PACKAGE).with_suffix("").as_posix() if path.is_relative_to(_PACKAGE) else None


def _is_put(code: CodeType) -> bool:
    return code is Client.put.__code__


def _is_write(code: CodeType) -> bool:
    return code.co_name == "write" and Path(code.co_filename).parent.name == "asyncio"


def _is_data_received(code: CodeType) -> bool:
    return code.co_name == "data_received" and Path(code.co_filename).is_relative_to(_PACKAGE)


def _is_nothing(_code: CodeType) -> bool:
    return False


async def put_walk(client: Client) -> Walk:
    """The shortest of several puts."""
    walks = []
    for _ in range(_ROUNDS):
        recorder = Recorder(_is_put, _is_write)
        sys.setprofile(recorder)
        try:
            await client.put(_KEY, "value")
        finally:
            sys.setprofile(None)
        walks.append(recorder.walk)
    return min(walks, key=len)


async def event_walk(client: Client, endpoint: str) -> Walk:
    """The shortest of several events."""
    walks = []
    async with client.watch(_KEY) as watcher:
        for _ in range(_ROUNDS):
            recorder = Recorder(_is_data_received, _is_nothing)
            writer = asyncio.create_task(asyncio.to_thread(_put_with_another_client, endpoint), name="writer")
            sys.setprofile(recorder)
            try:
                await anext(watcher)
            finally:
                sys.setprofile(None)
            walks.append(recorder.walk)
            await writer
    return min(walks, key=len)


def _put_with_another_client(endpoint: str) -> None:
    async def put() -> None:
        async with Client(endpoint) as client:
            await client.put(_KEY, "value")

    asyncio.run(put())


async def measure() -> dict[str, Walk]:
    """Both walks, on a server of their own."""
    async with EtcdServer() as server, Client(server.endpoint) as client:
        return {"put": await put_walk(client), "event": await event_walk(client, server.endpoint)}


def table(walks: dict[str, Walk]) -> str:
    """Calls, resumptions and files of each walk, by package and in all."""
    columns = ("calls", "resumed", "files")
    rows = [["", *(f"{name} {column}" for name in walks for column in columns)]]
    for package in (*sorted({step.package for walk in walks.values() for step in walk}), None):
        row = [package or "total"]
        for walk in walks.values():
            steps = [step for step in walk if package in (None, step.package)]
            resumed = sum(step.is_resumed for step in steps)
            row += [str(len(steps) - resumed), str(resumed), str(len({step.module for step in steps}))]
        rows.append(row)
    return "\n".join("".join([f"{row[0]:<14}", *(f"{cell:>15}" for cell in row[1:])]) for row in rows)


def listing(walk: Walk) -> str:
    """Every step of a walk, in order."""
    return "\n".join(f"  {step.module:<32} {step.function}{' (resumed)' * step.is_resumed}" for step in walk)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.walks", description=__doc__.partition("\n")[0])
    parser.add_argument("--list", action="store_true", help="also print every step, in order")
    given = parser.parse_args()
    walks = asyncio.run(measure())
    if given.list:
        for name, walk in walks.items():
            print(f"{name}:\n{listing(walk)}\n")
    print(table(walks))


if __name__ == "__main__":
    main()
