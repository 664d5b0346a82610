"""The blocking classes in `etcd_aio/sync`, made from the sources of the asyncio classes.

python -m release.facade --check    tells whether they are up to date
python -m release.facade --write    writes them
"""

import sys
from collections.abc import Sequence
from pathlib import Path

from release.api import ROOT, public_names
from release.facade.choice import SYNC, Choice
from release.facade.modules import Modules, formatted
from release.facade.sources import Sources

BY_HAND = frozenset({"base_client.py", "base_fake.py"})


def files() -> dict[Path, str]:
    """The text of each generated file."""
    choice = Choice(Sources(ROOT), public_names())
    return formatted(Modules(choice).texts(), ROOT)


def main(arguments: Sequence[str]) -> int:
    """Write or compare. Returns the exit code."""
    made = files()
    folder = ROOT.joinpath(*SYNC.split("."))
    others = [path for path in folder.rglob("*.py") if path not in made and path.name not in BY_HAND]
    if "--write" in arguments:
        for path in others:
            path.unlink()
        for path, text in made.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        return 0
    wrong = [path for path, text in made.items() if not path.exists() or path.read_text(encoding="utf-8") != text]
    for path in sorted([*wrong, *others]):
        sys.stderr.write(f"{path.relative_to(ROOT)} is out of date: python -m release.facade --write\n")
    return bool(wrong or others)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
