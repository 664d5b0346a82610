"""Choice: what gets a blocking side: public classes and functions with something asynchronous, and what they give."""

import ast
from collections.abc import Iterator

from release import public
from release.facade.annotations import Annotations
from release.facade.classes import Class, Member, class_of
from release.facade.sources import LIBRARY, Definition, Function, Sources
from release.facade.tables import EXCLUDED, INNER, OPTIONS, OUTSIDE, WITHOUT

SYNC = f"{LIBRARY}.sync"


def home(module: str) -> str:
    """The module of the blocking classes for one of asyncio."""
    return SYNC + module.removeprefix(LIBRARY)


def is_outside(module: str) -> bool:
    """Whether a public module has no blocking side."""
    return (
        module == SYNC
        or module.startswith(f"{SYNC}.")
        or any(module == name or module.startswith(f"{name}.") for name in OUTSIDE)
    )


class Choice:
    """All that is generated.

    Args:
        sources: the sources.
        names: the public names of the library, and what each stands for; see `release.api`.

    Attributes:
        classes: the classes, by path.
        functions: the functions, by path.
        exported: the public names: of the blocking module, and the definition.
        annotations: translates their types.
    """

    def __init__(self, sources: Sources, names: dict[str, str]) -> None:
        self.sources = sources
        self.classes: dict[str, Class] = {}
        self.functions: dict[str, Definition] = {}
        self.exported: dict[str, Definition] = {}
        self._facades: dict[str, str] = {}
        self.annotations = Annotations(sources, self._facades)
        found = {
            name: self._definition(path) for name, path in names.items() if not is_outside(name.rpartition(".")[0])
        }
        for definition in found.values():
            if isinstance(definition.node, ast.ClassDef) and class_of(sources, definition).is_asynchronous:
                self._add(definition)
        for path in (*INNER, OPTIONS):
            self._add(self._definition(path))
        self._add_returned()
        for definition in found.values():
            node = definition.node
            if definition.path in WITHOUT or not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                continue
            if isinstance(node, ast.AsyncFunctionDef) or self.annotations.has_facade(definition.module, node.returns):
                self.functions[definition.path] = definition
        for name, definition in found.items():
            if definition.path in self.classes or definition.path in self.functions:
                self.exported[SYNC + name.removeprefix(LIBRARY)] = definition

    def _definition(self, path: str) -> Definition:
        module, _, name = path.rpartition(".")
        found = self.sources.find(module, name)
        assert found is not None, path
        return found

    def _add(self, definition: Definition) -> None:
        if definition.path not in WITHOUT and definition.path not in self.classes:
            self.classes[definition.path] = class_of(self.sources, definition)
            self._facades[definition.path] = home(definition.module)

    def _add_returned(self) -> None:
        """The classes with something asynchronous that methods of the others return."""
        waiting = list(self.classes.values())
        while waiting:
            one = waiting.pop()
            for member in self.members(one, all_of_them=True):
                for function in member.functions:
                    for found in self._named(member.owner.module, function.returns):
                        if isinstance(found.node, ast.ClassDef) and found.path not in self.classes:
                            inner = class_of(self.sources, found)
                            if inner.is_asynchronous and found.path not in WITHOUT:
                                self._add(found)
                                waiting.append(inner)

    def _named(self, module: str, node: ast.expr | None) -> Iterator[Definition]:
        found: list[Definition] = []

        def collect(one: Definition | str) -> bool:
            if isinstance(one, Definition):
                found.append(one)
            return False

        self.annotations.mentions(module, node, collect)
        yield from found

    def members(self, one: Class, *, all_of_them: bool = False) -> list[Member]:
        """The members that a facade defines: its own, and those of bases that have none, unless all are asked for."""
        found: dict[str, Member] = {}
        inherited: set[str] = set()
        for base in one.order:
            if base is not one and base.definition.path in self.classes and not all_of_them:
                inherited.update(name for inner in base.order for name in inner.own)
        for base in one.order:
            for name, member in base.own.items():
                if name in found or (base is not one and name in inherited) or self._is_excluded(one, base, name):
                    continue
                member.types = base.types(one)
                found[name] = member
        return list(found.values())

    @staticmethod
    def _is_excluded(one: Class, base: Class, name: str) -> bool:
        return (
            f"{one.definition.name}.{name}" in EXCLUDED
            or f"{base.definition.name}.{name}" in EXCLUDED
            or any(
                f"{place}.{name}" in public.INTERNAL
                for place in (one.definition.path, f"{LIBRARY}.{one.definition.name}")
            )
        )

    def facade_base(self, one: Class) -> list[tuple[Class, ast.expr]]:
        """The bases that have a blocking class."""
        return [(class_of(self.sources, base), node) for base, node in one.bases if base.path in self.classes]


def parameters(function: Function) -> list[tuple[ast.arg, str]]:
    """The parameters of a method without `self`, with their kinds: positional, keyword, star or stars."""
    arguments = function.args
    found = [(one, "positional") for one in (*arguments.posonlyargs, *arguments.args)]
    if found and found[0][0].arg in ("self", "cls"):
        found = found[1:]
    if arguments.vararg is not None:
        found.append((arguments.vararg, "star"))
    found += [(one, "keyword") for one in arguments.kwonlyargs]
    if arguments.kwarg is not None:
        found.append((arguments.kwarg, "stars"))
    return found
