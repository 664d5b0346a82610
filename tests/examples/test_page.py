"""The runner of pages rejects a page whose code fails or prints something else."""

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
no output of Python
```
"""


def result(environment: dict[str, str], tmp_path: Path, page: str) -> "subprocess.CompletedProcess[str]":
    path = tmp_path / "page.md"
    path.write_text(page)
    command = [sys.executable, "-m", "tests.examples.page", str(path), "HERE", "'home'"]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def test_blocks_have_a_language_a_line_and_an_output() -> None:
    found = blocks(PAGE)
    assert [(block.language, block.line) for block in found] == [
        ("python", 2),
        ("python", 10),
        ("text", 15),
        ("console", 19),
        ("text", 23),
    ]
    assert [block.prints for block in found] == [None, "at ... 1\n", None, None, None]


def test_blocks_share_names_and_may_await_anywhere(environment: dict[str, str], tmp_path: Path) -> None:
    done = result(environment, tmp_path, PAGE)
    assert (done.returncode, done.stdout, done.stderr) == (0, "at home 1\n", "")


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("at ... 1", "at ... 2", "page.md:10: it should print"),
        ("n = 1", "m = 1", "NameError"),
        ("n = 1", "n = ", 'page.md", line 3'),
    ],
)
def test_a_wrong_page_fails(environment: dict[str, str], tmp_path: Path, before: str, after: str, message: str) -> None:
    done = result(environment, tmp_path, PAGE.replace(before, after))
    assert done.returncode == 1
    assert message in done.stderr
