"""Says the mistakes of a program in words of blocking code: the texts are those of the asyncio client."""

import re
from typing import Final

from etcd_aio.errors import ClientUsageError

_WORDS: Final = (
    (re.compile(r" \(or `with`\)"), ""),  # of texts that blocking code may get without a call
    (re.compile(r"\basync (with|for)\b"), r"\1"),
    (re.compile(r"\bawait (?=\w)"), ""),
    (re.compile(r"\baclose\b"), "close"),
    (re.compile(r"\btask(s?)\b"), r"thread\1"),
)


def say_in_blocking_words(error: BaseException) -> None:
    """Change the text of the error, if the program has used the client wrongly.

    Args:
        error: what a call has raised.
    """
    if isinstance(error, ClientUsageError):
        text = error.message
        for pattern, replacement in _WORDS:
            text = pattern.sub(replacement, text)
        error.message = text
        error.args = (text,)
