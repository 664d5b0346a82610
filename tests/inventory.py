"""List all test functions, so that two commits can be compared: a test that moved is not a test that is lost.

python -m tests.inventory               those of the working tree, as file::name
python -m tests.inventory main          those of a commit
python -m tests.inventory main HEAD     what the second lacks, what it adds, and what has moved
"""

import ast
import io
import subprocess
import sys
import tarfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).parent.parent


def in_file(path: str, source: str) -> Iterator[str]:
    """The test functions of one file, those in classes included."""
    if PurePosixPath(path).name.startswith("test_"):
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
                yield f"{path}::{node.name}"


def in_tree(root: Path = ROOT) -> list[str]:
    """The test functions of the working tree."""
    files = sorted((root / "tests").rglob("test_*.py"))
    return [test for file in files for test in in_file(file.relative_to(root).as_posix(), file.read_text())]


def in_commit(revision: str) -> list[str]:
    """The test functions of a commit."""
    packed = subprocess.run(["git", "archive", revision, "tests"], cwd=ROOT, capture_output=True, check=True).stdout
    found: list[str] = []
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        for entry in archive:
            if entry.name.endswith(".py") and (content := archive.extractfile(entry)) is not None:
                found += in_file(entry.name, content.read().decode())
    return sorted(found)


def differences(before: Iterable[str], after: Iterable[str]) -> list[str]:
    """What changed: a name that only changed its file has moved."""
    old, new = set(before), set(after)
    lost, added = sorted(old - new), sorted(new - old)
    moved: list[str] = []
    for test in tuple(lost):
        name = test.partition("::")[2]
        target = next((one for one in added if one.partition("::")[2] == name), None)
        if target is not None:
            lost.remove(test)
            added.remove(target)
            moved.append(f"moved  {test} -> {target}")
    return [*(f"lost   {test}" for test in lost), *(f"added  {test}" for test in added), *moved]


def main(arguments: Sequence[str]) -> None:
    """Print the list, or the differences of two."""
    if len(arguments) == 2:
        print(*differences(*(in_commit(revision) for revision in arguments)), sep="\n")
    else:
        print(*(in_commit(arguments[0]) if arguments else in_tree()), sep="\n")


if __name__ == "__main__":
    main(sys.argv[1:])
