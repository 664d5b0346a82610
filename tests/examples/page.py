"""Runs the Python blocks of one page, as a reader would who types them into `python -m asyncio` one after the other.

They share their names and one event loop, and `await` works everywhere. A block that calls `asyncio.run` has a loop of
its own. What a block is said to print it must print; `...` stands for anything. The arguments are the page, and then
pairs: a text of the page, and what is to be taken in its place.
"""

import ast
import asyncio
import inspect
import sys
from contextlib import redirect_stdout
from doctest import ELLIPSIS, OutputChecker
from io import StringIO
from pathlib import Path

from tests.examples.blocks import Block, python_blocks, read


def run(block: Block, page: str, names: dict[str, object], runner: asyncio.Runner) -> str:
    """Run one block; returns what it printed."""
    source = "\n" * (block.line - 1) + block.code  # so that a traceback shows the page's own line
    code = compile(source, page, "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
    printed = StringIO()
    with redirect_stdout(printed):
        result = eval(code, names)
        if code.co_flags & inspect.CO_COROUTINE:
            runner.run(result)
    return printed.getvalue()


def main(page: str, *replaced: str) -> None:
    text = read(Path(page))
    for before, after in zip(replaced[::2], replaced[1::2], strict=True):
        text = text.replace(before, after)
    names: dict[str, object] = {"__name__": "__main__"}
    with asyncio.Runner() as runner:
        for block in python_blocks(text):
            printed = run(block, page, names, runner)
            print(printed, end="")
            if block.prints is not None and not OutputChecker().check_output(block.prints, printed, ELLIPSIS):
                sys.exit(f"{page}:{block.line}: it should print\n{block.prints}and prints\n{printed}")


if __name__ == "__main__":
    main(*sys.argv[1:])
