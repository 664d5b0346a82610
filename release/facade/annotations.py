"""Annotations: the types of a member of an asyncio class, as those of a blocking one."""

import ast
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from release.facade.classes import is_type_variable
from release.facade.sources import Definition, Sources

_ITERATORS = {"AsyncIterator": "Iterator", "AsyncIterable": "Iterable"}
_RESULTS = {"Awaitable", "Coroutine"}
_BLOCKS = {"AbstractAsyncContextManager": "AbstractContextManager"}
_ASYNCHRONOUS = {*_ITERATORS, *_RESULTS, *_BLOCKS}


@dataclass
class Names:
    """The names that a generated module needs.

    Attributes:
        module: the module.
        imports: the imports at run time: the name, and the module and the name there.
        late: those for type checkers alone.
        variables: the statements that make type variables.
    """

    module: str
    imports: dict[str, tuple[str, str]] = field(default_factory=dict)
    late: dict[str, tuple[str, str]] = field(default_factory=dict)
    variables: dict[str, str] = field(default_factory=dict)

    def add(self, name: str, module: str, original: str, *, is_late: bool = False) -> str:
        """Import a name. Returns what it is called.

        Raises:
            ValueError: another object has the name.
        """
        for names in (self.imports, self.late):
            if names.get(name, (module, original)) != (module, original):
                raise ValueError(f"{self.module}: {name} is {names[name]} and {(module, original)}")
        if is_late and name not in self.imports:
            self.late[name] = (module, original)
        elif not is_late:
            self.late.pop(name, None)
            self.imports[name] = (module, original)
        return name


class Annotations:
    """Translates types.

    Args:
        sources: the sources.
        facades: the classes that have a blocking one, by path, and the modules of these.
    """

    def __init__(self, sources: Sources, facades: Mapping[str, str]) -> None:
        self.sources = sources
        self.facades = facades

    def facade(self, definition: Definition) -> tuple[str, str] | None:
        """The module and the name of the blocking class that stands for a class."""
        module = self.facades.get(definition.path)
        return None if module is None else (module, definition.name)

    def home(self, found: Definition) -> str:
        """Where to import a name from: the package that has it, as far as that exports it."""
        package = ".".join(found.module.split(".")[:2])
        other = self.sources.find(package, found.name)
        return package if other == found else found.module

    def translate(
        self,
        module: str,
        node: ast.expr,
        names: Names,
        types: Mapping[str, tuple[str, ast.expr]],
        *,
        is_late: bool = False,
    ) -> ast.expr:
        """The type, with the names that it needs added to `names`."""
        translator = _Translator(self, module, names, types, is_late)
        result = translator.visit(ast.parse(ast.unparse(node), mode="eval").body)
        assert isinstance(result, ast.expr)
        return result

    def mentions(self, module: str, node: ast.expr | None, wanted: Callable[[Definition | str], bool]) -> bool:
        """Whether a type has a name for which a question is answered by yes; aliases are looked into."""
        if node is None:
            return False
        for name in ast.walk(node):
            if isinstance(name, ast.Constant) and isinstance(name.value, str):
                try:
                    inner = ast.parse(name.value, mode="eval").body
                except SyntaxError:
                    continue
                if self.mentions(module, inner, wanted):
                    return True
            elif isinstance(name, ast.Name | ast.Attribute):
                found = self.sources.find_expression(module, name)
                if found is None:
                    if wanted(ast.unparse(name).rpartition(".")[2]):
                        return True
                elif wanted(found):
                    return True
                else:
                    alias = alias_of(found)
                    if alias is not None and found.name != "JSONValue" and self.mentions(found.module, alias, wanted):
                        return True
        return False

    def has_facade(self, module: str, node: ast.expr | None) -> bool:
        """Whether a type names a class that has a blocking one."""
        return self.mentions(module, node, lambda one: isinstance(one, Definition) and self.facade(one) is not None)

    def is_asynchronous(self, module: str, node: ast.expr | None) -> bool:
        """Whether a type names something asynchronous."""
        return self.mentions(module, node, lambda one: one in _ASYNCHRONOUS)


def alias_of(definition: Definition) -> ast.expr | None:
    """What a type alias stands for; None if a definition is none."""
    node = definition.node
    if isinstance(node, ast.AnnAssign) and ast.unparse(node.annotation) == "TypeAlias":
        value = node.value
        if isinstance(value, ast.Constant) and isinstance(value.value, str):
            return ast.parse(value.value, mode="eval").body
        return value
    return None


class _Translator(ast.NodeTransformer):
    def __init__(
        self,
        annotations: Annotations,
        module: str,
        names: Names,
        types: Mapping[str, tuple[str, ast.expr]],
        is_late: bool,
    ) -> None:
        self._annotations = annotations
        self._sources = annotations.sources
        self._module = module
        self._names = names
        self._types = types
        self._is_late = is_late

    def visit_Constant(self, node: ast.Constant) -> ast.expr:
        if isinstance(node.value, str):
            inner = self.visit(ast.parse(node.value, mode="eval").body)
            assert isinstance(inner, ast.expr)
            return inner
        return node

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        name = ast.unparse(node.value).rpartition(".")[2]
        if name == "Literal":
            node.value = self.visit(node.value)
            return node
        if name in _RESULTS:
            result = node.slice.elts[-1] if isinstance(node.slice, ast.Tuple) else node.slice
            inner = self.visit(result)
            assert isinstance(inner, ast.expr)
            return inner
        other = (_ITERATORS | _BLOCKS).get(name)
        if other is not None:
            self._names.add(other, "contextlib" if name in _BLOCKS else "collections.abc", other)
            node.value = ast.Name(other)
            node.slice = self.visit(node.slice)
            return node
        node.value, node.slice = self.visit(node.value), self.visit(node.slice)
        return node

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        found = self._sources.find_expression(self._module, node)
        if found is not None:
            return self._definition(found, node.attr, is_late=False)
        root = node
        while isinstance(root.value, ast.Attribute):
            root = root.value
        assert isinstance(root.value, ast.Name), ast.unparse(node)
        self._names.add(root.value.id, root.value.id, "")
        return node

    def visit_Name(self, node: ast.Name) -> ast.expr:
        found = self._sources.find(self._module, node.id)
        module = self._sources.module(self._module)
        assert module is not None
        imported = module.imports.get(node.id)
        if found is not None:
            return self._definition(found, node.id, is_late=imported is not None and imported.is_late)
        if imported is not None:
            self._names.add(node.id, imported.module, imported.name, is_late=imported.is_late)
        return node

    def _definition(self, found: Definition, name: str, *, is_late: bool) -> ast.expr:
        if is_type_variable(found):
            return self._variable(found)
        facade = self._annotations.facade(found)
        is_late = is_late or self._is_late
        if facade is not None:
            module, original = facade
            if module != self._names.module:
                self._names.add(original, module, original, is_late=is_late)
            return ast.Name(original)
        alias = alias_of(found)
        is_exported = self._annotations.home(found) != found.module or found.module.count(".") == 1
        if alias is not None and (
            not is_exported
            or self._annotations.has_facade(found.module, alias)
            or self._annotations.is_asynchronous(found.module, alias)
        ):
            return self._annotations.translate(found.module, alias, self._names, self._types, is_late=is_late)
        self._names.add(name, self._annotations.home(found), found.name, is_late=is_late)
        return ast.Name(name)

    def _variable(self, found: Definition) -> ast.expr:
        given = self._types.get(found.name)
        if given is not None:
            module, node = given
            return self._annotations.translate(module, node, self._names, {}, is_late=self._is_late)
        assert isinstance(found.node, ast.Assign)
        call = found.node.value
        assert isinstance(call, ast.Call)
        for keyword in call.keywords:
            if keyword.arg == "bound":
                keyword.value = self._annotations.translate(found.module, keyword.value, self._names, {})
        function = ast.unparse(call.func)
        self._names.add(function, "typing", function)
        self._names.variables[found.name] = f"{found.name} = {ast.unparse(call)}"
        return ast.Name(found.name)
