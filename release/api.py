"""The public interface as text, one fact a line, and what a change of it means.

python -m release.api                  compares this checkout with the last tag, else with `api.txt`
python -m release.api --write          writes `api.txt`
python -m release.api --against REF    compares with a commit

Public is what `public.py` lists. The sources are read and not run (griffe), so that any commit can be compared, on any
Python. A fact that disappears may break a user: then the changelog has to
name it.
"""

import argparse
import io
import re
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import griffe

from release.late import LateDataclasses
from release.public import INTERNAL, PUBLIC
from release.version import notes, read_version

ROOT: Final = Path(__file__).parent.parent
FILE: Final = Path(__file__).parent / "api.txt"
_PACKAGES: Final = ("etcd_aio", "pytest_etcd_aio")
_SPECIAL: Final = frozenset({"__aenter__", "__anext__", "__contains__", "__getitem__", "__iter__", "__len__"})
_SHORT: Final = 200  # columns; a longer default is an implementation
_STARS: Final = {griffe.ParameterKind.var_positional: "*", griffe.ParameterKind.var_keyword: "**"}
_NAME: Final = re.compile(r"(?:class |async def |def )?([\w.]+)")
_REQUIRED: Final = re.compile(r"[\w.]+\([*\d]+, \w(?!.* = )")


# --- facts of a tree of sources ---


def facts_of(folder: Path) -> list[str]:
    """The facts of the packages in a folder, sorted."""
    loader = _load(folder)
    names: dict[str, str] = {}  # the first public name of each object, by its path
    found: set[str] = set()
    for name, value in _public(loader):
        if names.setdefault(value.path, name) != name:
            found.add(f"{name} is {names[value.path]}")
    for path, name in names.items():
        value = loader.modules_collection[path]
        found.update(fact for fact in _facts(name, value, names) if name_of(fact) not in INTERNAL)
    return sorted(found)


def public_names(folder: Path = ROOT) -> dict[str, str]:
    """The public names of the packages in a folder, without the members of classes, and the path of what each names."""
    return {name: value.path for name, value in _public(_load(folder))}


def undocumented(public: Mapping[str, str], shown: Collection[str]) -> list[str]:
    """The public names that are not shown, and no other name of the same object; defaults are shown in signatures."""
    paths = {public[name] for name in shown if name in public}
    return sorted(
        name
        for name, path in public.items()
        if path not in paths and not name.rpartition(".")[2].startswith("DEFAULT_")
    )


def _load(folder: Path) -> griffe.GriffeLoader:
    extensions = griffe.load_extensions(LateDataclasses())
    loader = griffe.GriffeLoader(extensions=extensions, search_paths=[folder])
    for package in _PACKAGES:
        if (folder / package).exists():
            loader.load(package, try_relative_path=False)  # not those of the current folder
    loader.resolve_aliases(implicit=True, external=False)
    return loader


def _public(loader: griffe.GriffeLoader) -> Iterator[tuple[str, griffe.Object]]:
    for module in PUBLIC:
        for member, value in _exported(loader, module):
            if f"{module}.{member}" not in INTERNAL:
                yield f"{module}.{member}", value


def _exported(loader: griffe.GriffeLoader, module: str) -> Iterator[tuple[str, griffe.Object]]:
    """The names that a module imports for others, and of one that is no package those that it defines."""
    try:
        found = loader.modules_collection[module]
    except KeyError:  # an older commit may not have it
        return
    package = found.final_target if isinstance(found, griffe.Alias) else found
    assert isinstance(package, griffe.Module)
    for name, path in sorted(_handed_on(package) | _defined(package)):
        value = None if name.startswith("_") and name != "__version__" else _target(loader, path)
        if value is not None and not isinstance(value, griffe.Module):
            yield name, value


def _handed_on(package: griffe.Module) -> set[tuple[str, str]]:
    """The names of `import A as A` or `__all__`, also if a module inside of the package has the name."""
    return {
        (name, path)
        for name, path in package.imports.items()
        if re.search(rf"\b{name} as {name}\b", package.source) or name in (package.exports or ())
    }


def _defined(package: griffe.Module) -> set[tuple[str, str]]:
    return {
        (name, member.path)
        for name, member in package.members.items()
        if not member.is_alias and (not package.is_init_module or name == "__version__")
    }


def _target(loader: griffe.GriffeLoader, path: str) -> griffe.Object | None:
    """What a path stands for; None if that is of another library."""
    try:
        member = loader.modules_collection[path]
    except KeyError:
        return None
    return _own(member)


def _own(member: griffe.Object | griffe.Alias) -> griffe.Object | None:
    try:
        target = member.final_target if isinstance(member, griffe.Alias) else member
    except (griffe.AliasResolutionError, griffe.CyclicAliasError):
        return None
    return target if target.path.partition(".")[0] in _PACKAGES else None


def _facts(name: str, value: griffe.Object, names: Mapping[str, str]) -> Iterator[str]:
    """What can be relied upon of one object. What a class inherits from a public class is a fact of that one."""
    if isinstance(value, griffe.Function):
        if "property" in value.labels:
            yield f"{name}: {value.returns}"
        else:
            yield f"{'async def' if 'async' in value.labels else 'def'} {name} -> {value.returns}"
            yield from _parameters(name, value)
    elif isinstance(value, griffe.Class):
        yield f"class {name}({', '.join(map(str, value.bases))})"
        for member_name, member in sorted(value.all_members.items()):
            target = _own(member)
            if target is None or (
                target.parent is not value and target.parent is not None and target.parent.path in names
            ):
                continue
            if member_name == "__init__" and isinstance(target, griffe.Function):
                yield from _parameters(name, target)
            elif not member_name.startswith("_") or member_name in _SPECIAL:
                yield from _facts(f"{name}.{member_name}", target, names)
    else:
        yield _value(name, value)


def _parameters(name: str, value: griffe.Function) -> Iterator[str]:
    place = 0
    for parameter in value.parameters:
        if parameter.name in ("self", "cls") and value.parent is not None and value.parent.is_class and not place:
            continue
        is_keyword = parameter.kind is griffe.ParameterKind.keyword_only
        star = _STARS.get(parameter.kind or griffe.ParameterKind.positional_or_keyword, "")
        default = "" if parameter.default is None or star else f" = {str(parameter.default)[:_SHORT]}"
        yield f"{name}({'*' if is_keyword else place}, {star}{parameter.name}: {parameter.annotation}{default})"
        place += not is_keyword


def _value(name: str, value: griffe.Object) -> str:
    annotation = getattr(value, "annotation", None)
    text = str(getattr(value, "value", None))
    if name.endswith(".__version__"):
        return f"{name}: str"
    if annotation is not None and str(annotation) not in ("TypeAlias", "Final"):
        return f"{name}: {annotation}"
    return f"{name} = {text}" if text != "None" and len(text) <= _SHORT else name


# --- comparison ---


@dataclass(frozen=True, slots=True)
class Change:
    """The facts of one name that differ.

    Attributes:
        name: the public name.
        lost: the facts that are gone.
        new: the facts that were not there.
        is_known: whether the name was there before.
    """

    name: str
    lost: tuple[str, ...]
    new: tuple[str, ...]
    is_known: bool

    @property
    def is_breaking(self) -> bool:
        """Whether code that worked may not work any more: a fact is lost, or a parameter has to be given."""
        return bool(self.lost) or (self.is_known and any(_REQUIRED.match(fact) for fact in self.new))


def name_of(fact: str) -> str:
    """The name that a fact is about."""
    found = _NAME.match(fact)
    if found is None:
        raise ValueError(fact)
    return found[1]


def compare(old: Iterable[str], new: Iterable[str]) -> list[Change]:
    """The changes from one list of facts to another, by name."""
    before, after = set(old), set(new)
    known = {name_of(fact) for fact in before}
    lost: dict[str, list[str]] = {}
    added: dict[str, list[str]] = {}
    for facts, by_name in ((before - after, lost), (after - before, added)):
        for fact in sorted(facts):
            by_name.setdefault(name_of(fact), []).append(fact)
    return [
        Change(name, tuple(lost.get(name, ())), tuple(added.get(name, ())), name in known)
        for name in sorted(lost.keys() | added.keys())
    ]


def unexplained(changes: Iterable[Change], text: str) -> list[Change]:
    """The breaking changes of which a text, the changelog, does not have the last part of the name."""
    words = set(re.findall(r"\w+", text))
    return [change for change in changes if change.is_breaking and change.name.rpartition(".")[2] not in words]


# --- commits ---


def last_tag() -> str | None:
    """The last tag of a version before this commit."""
    command = ["git", "describe", "--tags", "--abbrev=0", "--match", "v[0-9]*", "HEAD^"]
    found = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    return found.stdout.strip() or None


def facts_of_commit(revision: str) -> list[str]:
    """The facts of a commit."""
    command = ["git", "archive", revision, *_PACKAGES]
    packed = subprocess.run(command, cwd=ROOT, capture_output=True, check=True).stdout
    with tempfile.TemporaryDirectory() as folder, tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        archive.extractall(folder, filter="data")
        return facts_of(Path(folder))


def check(now: Iterable[str], against: str | None = None) -> tuple[str, list[Change], list[Change]]:
    """What some facts are compared with, what has changed, and what the changelog does not explain."""
    reference = against or last_tag()
    old = facts_of_commit(reference) if reference else FILE.read_text(encoding="utf-8").splitlines()
    changes = compare(old, now)
    version = read_version((ROOT / "etcd_aio" / "_version.py").read_text(encoding="utf-8"))
    text = notes((ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), version)
    return reference or "release/api.txt", changes, unexplained(changes, text)


def main(arguments: Sequence[str]) -> int:
    """Write or compare. Returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m release.api", description="Compare the public interface.")
    parser.add_argument("--write", action="store_true", help="write release/api.txt")
    parser.add_argument("--against", metavar="REF", help="a commit; default: the last tag, else release/api.txt")
    options = parser.parse_args(arguments)
    if options.write:
        FILE.write_text("\n".join(facts_of(ROOT)) + "\n", encoding="utf-8")
        return 0
    reference, changes, missing = check(facts_of(ROOT), options.against)
    for change in changes:
        for sign, of_sign in (("-", change.lost), ("+", change.new)):
            for fact in of_sign:
                sys.stdout.write(f"{sign} {fact}\n")
    sys.stdout.write(f"{len(changes)} names differ from {reference}\n")
    for change in missing:
        sys.stdout.write(f"breaking, and not in the changelog: {change.name}\n")
    return bool(missing)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
