"""Sources: the modules of the library as syntax trees, and which definition a name in one of them stands for."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TypeAlias

LIBRARY = "etcd_aio"

Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Import:
    """A name that a module imports.

    Attributes:
        module: where it is imported from.
        name: what it is called there; empty for a whole module.
        is_late: whether only type checkers see it.
    """

    module: str
    name: str
    is_late: bool


@dataclass(frozen=True)
class Definition:
    """A definition at the top of a module.

    Attributes:
        module: the module's name.
        name: its own; empty if it is the module itself.
        node: the statement.
    """

    module: str
    name: str
    node: ast.stmt = field(compare=False, repr=False)

    @property
    def path(self) -> str:
        """The dotted path."""
        return f"{self.module}.{self.name}" if self.name else self.module


@dataclass
class Module:
    """A module.

    Attributes:
        name: the dotted name.
        tree: its syntax tree.
    """

    name: str
    tree: ast.Module

    @cached_property
    def definitions(self) -> dict[str, ast.stmt]:
        """The classes, functions and values that it defines, by name."""
        found: dict[str, ast.stmt] = {}
        for node in self.tree.body:
            if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                found[node.name] = node
            elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                found[node.target.id] = node
            elif isinstance(node, ast.Assign):
                found.update({target.id: node for target in node.targets if isinstance(target, ast.Name)})
        return found

    @cached_property
    def imports(self) -> dict[str, Import]:
        """The names that it imports."""
        found: dict[str, Import] = {}
        for node, is_late in self._statements():
            if isinstance(node, ast.ImportFrom):
                for alias in node.names:
                    found[alias.asname or alias.name] = Import(node.module or "", alias.name, is_late)
            elif isinstance(node, ast.Import):
                for alias in node.names:
                    found[alias.asname or alias.name] = Import(alias.name, "", is_late)
        return found

    def _statements(self) -> Iterator[tuple[ast.stmt, bool]]:
        for node in self.tree.body:
            if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
                yield from ((inner, True) for inner in node.body)
            else:
                yield node, False


class Sources:
    """All modules of the library.

    Args:
        folder: has the packages.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._modules: dict[str, Module | None] = {}

    def module(self, name: str) -> Module | None:
        """A module; None if the library has none of the name."""
        if name not in self._modules:
            base = self._folder.joinpath(*name.split("."))
            path = next((one for one in (base / "__init__.py", base.with_suffix(".py")) if one.exists()), None)
            tree = None if path is None else ast.parse(path.read_text(encoding="utf-8"))
            self._modules[name] = None if tree is None else Module(name, tree)
        return self._modules[name]

    def find(self, module: str, name: str) -> Definition | None:
        """What a name in a module stands for; None if that is of another library, or a builtin."""
        found = self.module(module)
        if found is None:
            return None
        if name in found.definitions:
            return Definition(module, name, found.definitions[name])
        imported = found.imports.get(name)
        if imported is not None and imported.module.partition(".")[0] == LIBRARY:
            if imported.name:
                inner = self.find(imported.module, imported.name)
                if inner is not None:
                    return inner
            return self._whole(f"{imported.module}.{imported.name}".rstrip("."))
        return self._whole(f"{module}.{name}")

    def _whole(self, name: str) -> Definition | None:
        module = self.module(name)
        return None if module is None else Definition(name, "", module.tree.body[0])

    def find_path(self, path: str) -> Definition:
        """The definition of a dotted path.

        Raises:
            LookupError: there is none.
        """
        module, _, name = path.rpartition(".")
        found = self.find(module, name)
        if found is None:
            raise LookupError(path)
        return found

    def find_expression(self, module: str, node: ast.expr) -> Definition | None:
        """What a name, or an attribute of a module, stands for."""
        if isinstance(node, ast.Subscript):
            return self.find_expression(module, node.value)
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            return self.find_expression(module, ast.parse(node.value, mode="eval").body)
        if isinstance(node, ast.Name):
            return self.find(module, node.id)
        if isinstance(node, ast.Attribute):
            owner = self.find_expression(module, node.value)
            return None if owner is None or owner.name else self.find(owner.module, node.attr)
        return None
