"""The runner of pages can fail: a page that lies is told from one that does not."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.examples.blocks import blocks

PAGE = """\
```python
import asyncio
n = 1
await asyncio.sleep(0)
```

Words.

```python
async def main(): print("at", HERE, n)
asyncio.run(main())
```

```text
at ... 1
```

```console
pip install nothing
```

```text
of nobody
```
"""


def result(environment: dict[str, str], tmp_path: Path, page: str) -> "subprocess.CompletedProcess[str]":
    path = tmp_path / "page.md"
    path.write_text(page)
    command = [sys.executable, "-m", "tests.examples.page", str(path), "HERE", "'home'"]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def test_blocks_know_their_language_their_line_and_what_they_print() -> None:
    found = blocks(PAGE)
    assert [(one.language, one.line) for one in found] == [
        ("python", 2),
        ("python", 10),
        ("text", 15),
        ("console", 19),
        ("text", 23),
    ]
    assert [one.prints for one in found] == [None, "at ... 1\n", None, None, None]


def test_blocks_share_their_names_and_await_anywhere(environment: dict[str, str], tmp_path: Path) -> None:
    done = result(environment, tmp_path, PAGE)
    assert (done.returncode, done.stdout, done.stderr) == (0, "at home 1\n", "")


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ("at ... 1", "at ... 2", "page.md:10: it should print"),
        ("n = 1", "m = 1", "NameError"),
        ("n = 1", "n = ", 'page.md", line 3'),
    ],
)
def test_a_page_that_lies_fails(
    environment: dict[str, str], tmp_path: Path, before: str, after: str, said: str
) -> None:
    done = result(environment, tmp_path, PAGE.replace(before, after))
    assert done.returncode == 1
    assert said in done.stderr
