"""Docstrings: paragraphs, examples and items of sections, rewritten by a function and filled again."""

import re
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import dataclass

_SECTION = re.compile(r"(Args|Attributes|Raises|Returns|Yields|Cancellation):$")
_ITEM = re.compile(r"[\w`*, .]+: ")
_COLUMNS = 120


@dataclass
class Block:
    """Lines that belong together.

    Attributes:
        lines: as they are written.
        is_code: whether they are an example, of which each line is rewritten for itself.
        indent: the columns before the first line.
        hanging: the columns before the others.
    """

    lines: list[str]
    is_code: bool
    indent: int
    hanging: int


def rewritten(text: str, prose: Callable[[str], str], code: Callable[[str], str], indent: int) -> str:
    """A docstring in other words.

    Args:
        text: the docstring, without the indentation of its place.
        prose: rewrites a paragraph, which is one line for it; without a text left, the paragraph is left out.
        code: rewrites a line of an example.
        indent: the columns of its place.
    """
    lines: list[str] = []
    for block in blocks(text):
        if block.is_code:
            lines += [code(line) for line in block.lines]
            continue
        before = " ".join(line.strip() for line in block.lines)
        after = prose(before)
        if after == before:
            lines += block.lines
        elif after:
            width = _COLUMNS - indent
            if not lines and len(after) > width - 6:  # the first line has quotes, and is one sentence
                summary, stop, after = after.partition(". ")
                lines += [f"{summary}{stop.strip()}", ""]
            lines += textwrap.wrap(
                after,
                width,
                initial_indent=" " * block.indent,
                subsequent_indent=" " * block.hanging,
                break_long_words=False,
                break_on_hyphens=False,
            )
    return _without_empty_sections("\n".join(lines) + "\n").strip()


def blocks(text: str) -> Iterator[Block]:
    """The blocks of a docstring. Empty lines are blocks, too."""
    is_section = False
    current: Block | None = None
    for line in text.split("\n"):
        indent = len(line) - len(line.lstrip())
        if not line.strip() or _SECTION.match(line):
            if current is not None:
                yield current
            current = None
            is_section = bool(_SECTION.match(line)) or (is_section and not line.strip())
            yield Block([line], is_code=True, indent=indent, hanging=indent)
            continue
        is_new = current is None
        is_code = indent >= 4 and not is_section
        is_section = is_section and indent > 0
        if current is not None:
            is_item = is_section and indent == 4 and _ITEM.match(line.strip()) is not None
            is_new = is_code != current.is_code or is_item or (indent == 0 and line.startswith("- "))
        if is_new or current is None:
            if current is not None:
                yield current
            hangs = (is_section and indent == 4 and _ITEM.match(line.strip())) or line.startswith("- ")
            current = Block([line], is_code, indent, indent + (2 if line.startswith("- ") else 4) if hangs else indent)
        else:
            current.lines.append(line)
    if current is not None:
        yield current


def _without_empty_sections(text: str) -> str:
    text = re.sub(r"(?m)^(Args|Attributes|Raises|Returns|Yields):\n+(?=^\S|\Z)", "", text)
    return re.sub(r"\n{3,}", "\n\n", text)


def without_section(text: str, name: str) -> str:
    """A docstring without a section."""
    return re.sub(rf"(?m)^{name}:\n(?:(?: .*)?\n)*(?: .*)?", "", text + "\n").strip()
