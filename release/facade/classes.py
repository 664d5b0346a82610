"""Classes as the sources have them: their order of inheritance, their members, and what is asynchronous of them."""

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property

from release.facade.sources import Definition, Function, Sources

SPECIAL = ("__len__", "__iter__", "__contains__", "__getitem__", "__bool__")
"""The special methods that a facade has, too; those of blocks and iterators come from its base classes."""


@dataclass
class Member:
    """A member of a class.

    Attributes:
        owner: the class that defines it.
        name: its name.
        functions: a method, or a property with its setter, after its overloads; empty for an attribute.
        annotation: the type of an attribute.
        types: what the type variables of the owner stand for in the class that inherits it.
    """

    owner: Definition
    name: str
    functions: list[Function] = field(default_factory=list)
    annotation: ast.expr | None = None
    types: Mapping[str, tuple[str, ast.expr]] = field(default_factory=dict)

    @property
    def main(self) -> Function:
        """The method itself, behind its overloads; of a property, how it is read."""
        return self.functions[0] if self.is_property else self.functions[-1]

    @property
    def overloads(self) -> list[Function]:
        """Its overloads."""
        return [function for function in self.functions if "overload" in decorators(function)]

    @property
    def is_property(self) -> bool:
        """Whether it is read as an attribute."""
        return not self.functions or bool({"property", "cached_property"} & decorators(self.functions[0]))

    @property
    def has_setter(self) -> bool:
        """Whether the property can be assigned to."""
        return self.is_property and len(self.functions) > 1


def decorators(function: Function) -> set[str]:
    """The names of the decorators of a function."""
    return {ast.unparse(node).rpartition(".")[2] for node in function.decorator_list}


class Class:
    """A class.

    Args:
        sources: the sources.
        definition: where it is.
    """

    def __init__(self, sources: Sources, definition: Definition) -> None:
        assert isinstance(definition.node, ast.ClassDef)
        self.sources = sources
        self.definition = definition
        self.node = definition.node

    def __repr__(self) -> str:
        return self.definition.path

    @cached_property
    def bases(self) -> list[tuple[Definition, ast.expr]]:
        """The base classes that are of this library, and how they are written."""
        found = [(self.sources.find_expression(self.definition.module, node), node) for node in self.node.bases]
        return [(base, node) for base, node in found if base is not None and isinstance(base.node, ast.ClassDef)]

    @cached_property
    def order(self) -> list["Class"]:
        """The classes of the library that it inherits from, in the order in which members are looked for."""
        found: list[Class] = [self]
        for base, _ in self.bases:
            found += class_of(self.sources, base).order
        return [one for place, one in enumerate(found) if one not in found[place + 1 :]]

    def types(self, heir: "Class") -> Mapping[str, tuple[str, ast.expr]]:
        """What the type variables of this class stand for in a class that inherits it: a module, and a type there."""
        for base, node in heir.bases:
            inner = class_of(heir.sources, base)
            if self in inner.order:
                given = inner._given(heir.definition.module, node)
                return given if inner is self else _applied(self.types(inner), given)
        return {}

    def _given(self, module: str, node: ast.expr) -> dict[str, tuple[str, ast.expr]]:
        if not isinstance(node, ast.Subscript):
            return {}
        values = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        return {name: (module, value) for name, value in zip(self.variables, values, strict=False)}

    @cached_property
    def variables(self) -> list[str]:
        """The names of its type variables."""
        found: list[str] = []
        for base in self.node.bases:
            if isinstance(base, ast.Subscript):
                for node in ast.walk(base.slice):
                    if isinstance(node, ast.Name) and self._is_variable(node) and node.id not in found:
                        found.append(node.id)
        return found

    def _is_variable(self, node: ast.Name) -> bool:
        found = self.sources.find(self.definition.module, node.id)
        return found is not None and is_type_variable(found)

    @cached_property
    def own(self) -> dict[str, Member]:
        """The public members, and the special methods, that the class itself defines."""
        found: dict[str, Member] = {}
        for node in self.node.body:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                if is_shown(node.name):
                    member = found.setdefault(node.name, Member(self.definition, node.name))
                    member.functions.append(node)
            elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                name = node.target.id
                if is_shown(name) and "ClassVar" not in ast.unparse(node.annotation):
                    found[name] = Member(self.definition, name, annotation=node.annotation)
        for name, annotation in self._assigned():
            found.setdefault(name, Member(self.definition, name, annotation=annotation))
        return found

    def _assigned(self) -> Iterator[tuple[str, ast.expr]]:
        """The public attributes that `__init__` makes, as far as it says their types."""
        start = self.own_function("__init__")
        if start is None:
            return
        given = {one.arg: one.annotation for one in (*start.args.args, *start.args.kwonlyargs)}
        for node in ast.walk(start):
            target: ast.expr
            if isinstance(node, ast.AnnAssign):
                target, annotation = node.target, node.annotation
            elif isinstance(node, ast.Assign) and len(node.targets) == 1:
                found = given.get(node.value.id) if isinstance(node.value, ast.Name) else _type_of(node.value)
                if found is None:
                    continue
                target, annotation = node.targets[0], found
            else:
                continue
            if isinstance(target, ast.Attribute) and ast.unparse(target.value) == "self" and is_shown(target.attr):
                yield target.attr, annotation

    def own_function(self, name: str) -> Function | None:
        """A method that the class itself defines."""
        for node in self.node.body:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == name:
                return node
        return None

    def function(self, name: str) -> tuple["Class", Function] | None:
        """A method with the class that defines it."""
        for one in self.order:
            found = one.own_function(name)
            if found is not None:
                return one, found
        return None

    @cached_property
    def is_asynchronous(self) -> bool:
        """Whether it has a coroutine among its public members, is a block, or is iterated over asynchronously."""
        for one in self.order:
            for node in one.node.body:
                if isinstance(node, ast.AsyncFunctionDef) and (
                    is_shown(node.name) or node.name in ("__aenter__", "__anext__")
                ):
                    return True
        return False


@cache
def class_of(sources: Sources, definition: Definition) -> Class:
    """The class of a definition."""
    return Class(sources, definition)


def is_shown(name: str) -> bool:
    """Whether a name is public, or a special method that a facade has."""
    return not name.startswith("_") or name in SPECIAL


def is_type_variable(definition: Definition) -> bool:
    """Whether a definition is a `TypeVar`."""
    node = definition.node
    return isinstance(node, ast.Assign) and ast.unparse(node.value).startswith(("TypeVar(", "ParamSpec("))


def _type_of(value: ast.expr) -> ast.expr | None:
    """The type of a constant."""
    return ast.Name(type(value.value).__name__) if isinstance(value, ast.Constant) and value.value is not None else None


def _applied(
    types: Mapping[str, tuple[str, ast.expr]], given: Mapping[str, tuple[str, ast.expr]]
) -> dict[str, tuple[str, ast.expr]]:
    """Types that are named by variables, as they are given."""
    return {
        name: given.get(value.id, (module, value)) if isinstance(value, ast.Name) else (module, value)
        for name, (module, value) in types.items()
    }
