"""Runs the Python blocks of one page one after the other, as if they were typed into `python -m asyncio`.

The blocks share their names and one event loop, and `await` works everywhere. A block that calls `asyncio.run` has its
own loop. If the page shows the output of a block, the block must print exactly that; `...` stands for any text. The
arguments are the page, and then pairs of a text of the page and its replacement. Blocks that are files are left to
the tests of their pages.
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
    """Run one block. Returns its output."""
    source = "\n" * (block.line - 1) + block.code  # so that tracebacks show the line of the page
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
            if block.file is not None:
                continue
            printed = run(block, page, names, runner)
            print(printed, end="")
            if block.prints is not None and not OutputChecker().check_output(block.prints, printed, ELLIPSIS):
                sys.exit(f"{page}:{block.line}: it should print\n{block.prints}and prints\n{printed}")


if __name__ == "__main__":
    main(*sys.argv[1:])
