"""portal/words.py: mistakes of a program are told in words of blocking code."""

import pytest

from etcd_aio.errors import ClientUsageError, LockError
from etcd_aio.portal.words import say_in_blocking_words


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "not entered: write `async with client.watch(...) as watcher:`",
            "not entered: write `with client.watch(...) as watcher:`",
        ),
        ("write `async with cache:` (or `with`)", "write `with cache:`"),
        ("use `async for` or `await watcher.aclose()`", "use `for` or `watcher.close()`"),
        ("two tasks use it; a task at a time", "two threads use it; a thread at a time"),
    ],
)
def test_the_text_of_a_mistake(text: str, said: str) -> None:
    error = ClientUsageError(text)
    say_in_blocking_words(error)
    assert error.message == said
    assert error.args == (said,)
    assert str(error) == said


def test_another_error_stays_as_it_is() -> None:
    error = LockError("the task of the lock has ended")
    say_in_blocking_words(error)
    assert str(error) == "the task of the lock has ended"
