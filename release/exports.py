"""Where the names of each package are: `etcd_aio/_exports.py`, made from the imports in every `__init__`.

python -m release.exports            tells whether the file is up to date
python -m release.exports --write    writes it
"""

import ast
import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parent.parent
PACKAGE: Final = ROOT / "etcd_aio"
FILE: Final = PACKAGE / "_exports.py"

_COLUMNS: Final = 105  # for a module and its names in one line
_HEAD: Final = '''\
"""The names that packages import at their first use, by the modules that have them; see `exports.py`.

Made by `python -m release.exports --write`: do not edit.
"""

EXPORTS = {
'''


def text() -> str:
    """The text of the file."""
    lines = [_HEAD]
    for path in sorted(PACKAGE.rglob("*.py")):
        found = exported(path)
        if found:
            name = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
            lines.append(f'    "{name}": {{\n')
            lines += [_row(module, names) for module, names in sorted(found.items())]
            lines.append("    },\n")
    return "".join([*lines, "}\n"])


def _row(module: str, names: list[str]) -> str:
    parts = textwrap.wrap(" ".join(sorted(names)), 100)
    if len(parts) == 1 and len(module) + len(parts[0]) < _COLUMNS:
        return f'        "{module}": "{parts[0]}",\n'
    return f'        "{module}": (\n' + "".join(f'            "{part} "\n' for part in parts) + "        ),\n"


def exported(path: Path) -> dict[str, list[str]]:
    """The names that a package imports late, by their modules; empty if it imports them at once."""
    body = ast.parse(path.read_text(encoding="utf-8")).body
    if "late_names(__name__" not in path.read_text(encoding="utf-8"):
        return {}
    found: dict[str, list[str]] = {}
    for node in body:
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            for inner in node.body:
                assert isinstance(inner, ast.ImportFrom), f"{path}: not an import"
                names = [alias.name for alias in inner.names if alias.asname == alias.name]
                if names:
                    found.setdefault(inner.module or "", []).extend(names)
    return found


def main(arguments: Sequence[str]) -> int:
    """Write or compare. Returns the exit code."""
    made = text()
    if "--write" in arguments:
        FILE.write_text(made, encoding="utf-8")
    if FILE.read_text(encoding="utf-8") == made:
        return 0
    sys.stderr.write("etcd_aio/_exports.py is out of date: python -m release.exports --write\n")
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
