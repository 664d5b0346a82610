"""Reads the code blocks of a Markdown page, with the output that the page shows for each."""

import re
from dataclasses import dataclass
from pathlib import Path

_FENCE = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```$", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True)
class Block:
    """One fenced block. A `text` block directly after a `python` block is the output of that block."""

    language: str
    code: str
    line: int  # number of its first line of code, from 1
    prints: str | None = None

    @property
    def file(self) -> str | None:
        """The file that a block of Python is, if its first line is a comment with a name, such as `# test_app.py`."""
        match = re.match(r"# (\w+\.py)\n", self.code) if self.language == "python" else None
        return None if match is None else match[1]


def blocks(page: str) -> list[Block]:
    """Every fenced block of a page."""
    found: list[Block] = []
    end = 0
    for fence in _FENCE.finditer(page):
        language, code = fence.groups()
        if language == "text" and found and found[-1].language == "python" and not page[end : fence.start()].strip():
            found[-1] = Block("python", found[-1].code, found[-1].line, prints=code)
        found.append(Block(language, code, page.count("\n", 0, fence.start()) + 2))
        end = fence.end()
    return found


def python_blocks(page: str) -> list[Block]:
    return [block for block in blocks(page) if block.language == "python"]


def read(path: Path) -> str:
    return path.read_text(encoding="utf-8")
