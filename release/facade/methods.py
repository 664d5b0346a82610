"""Methods: the text of a method, a property or a function, which calls the asyncio one."""

import ast
import textwrap
from collections.abc import Mapping

from release.facade.annotations import Names
from release.facade.choice import Choice, parameters
from release.facade.classes import Class, Member, decorators
from release.facade.docstrings import without_section
from release.facade.sources import LIBRARY, Definition, Function
from release.facade.tables import (
    ARGUMENTS,
    BODIES,
    CALLBACKS,
    DIRECT,
    IN_LOOP,
    NAMES,
    SURVIVES_FORK,
    THREAD_SAFE,
)
from release.facade.words import blocking

PORTAL = "etcd_aio.portal"
RENAMED = {"aclose": "close"}

_SUMMARY = 105  # columns


class Writer:
    """Writes members of one module.

    Args:
        choice: all that is generated.
        names: collects the names that the module needs; those that only type checkers see are quoted.
        local: the classes that the module has, which may come later in it.
    """

    def __init__(self, choice: Choice, names: Names, local: frozenset[str]) -> None:
        self._choice = choice
        self._annotations = choice.annotations
        self._names = names
        self._local = local

    # Types.

    def type_text(
        self, module: str, node: ast.expr, types: Mapping[str, tuple[str, ast.expr]], *, is_quoted: bool = True
    ) -> str:
        """A type for blocking code."""
        text = ast.unparse(self._annotations.translate(module, node, self._names, types))
        used = {name.id for name in ast.walk(ast.parse(text)) if isinstance(name, ast.Name)}
        quotes = is_quoted and not used.isdisjoint(self._names.late.keys() | self._local)
        return '"' + text.replace('"', "'") + '"' if quotes else text

    def _parameter(self, module: str, one: ast.arg, types: Mapping[str, tuple[str, ast.expr]]) -> str:
        assert one.annotation is not None, one.arg
        if self._is_on_lost(module, one):
            self._names.add("Callable", "collections.abc", "Callable")
            self._names.add("EtcdError", "etcd_aio.errors", "EtcdError")
            return "on_lost: Callable[[EtcdError], object] | None"
        return f"{one.arg}: {self.type_text(module, one.annotation, types)}"

    def _is_on_lost(self, module: str, one: ast.arg) -> bool:
        return one.arg == "on_lost"

    def signature(
        self,
        module: str,
        function: Function,
        types: Mapping[str, tuple[str, ast.expr]],
        *,
        owner: str = "",
        first: str = "self",
        extra: str = "",
    ) -> str:
        """The parameters."""
        arguments = function.args
        positional = [*arguments.posonlyargs, *arguments.args]
        defaults = dict(zip(reversed(positional), reversed(arguments.defaults), strict=False))
        keyword = dict(zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True))
        parts = [first] if first else []
        stars_given = False
        for one, kind in parameters(function):
            if kind == "keyword" and not stars_given:
                stars_given = True
                parts.append("*")
            if kind == "star":
                stars_given = True
                parts.append("*" + self._parameter(module, one, types))
            elif kind == "stars":
                parts.append("**" + self._parameter(module, one, types))
            else:
                default = defaults.get(one) if kind == "positional" else keyword[one]
                if self._is_on_lost(module, one):
                    default = ast.Constant(None)
                text = self._parameter(module, one, types)
                parts.append(text if default is None else f"{text} = {self._default(module, default)}")
        if extra:
            parts.append(extra)
        return ", ".join(parts)

    def _default(self, module: str, node: ast.expr) -> str:
        source = self._choice.sources.module(module)
        assert source is not None
        for name in ast.walk(node):
            if isinstance(name, ast.Name):
                found = self._choice.sources.find(module, name.id)
                if found is not None:
                    home = self._annotations.home(found)
                    if home == found.module and isinstance(found.node, ast.AnnAssign) and isinstance(node, ast.Name):
                        assert found.node.value is not None  # a constant that the package does not export
                        return self._default(found.module, found.node.value)
                    self._names.add(name.id, home, found.name)
                else:
                    imported = source.imports[name.id]
                    self._names.add(name.id, imported.module, imported.name)
        return ast.unparse(node)

    # Calls.

    def arguments(self, module: str, owner: str, function: Function, *, unwraps: bool = True) -> list[str]:
        """The arguments, as the asyncio function takes them."""
        found = []
        for one, kind in parameters(function):
            value = self._argument(module, f"{owner}.{function.name}", one, unwraps=unwraps)
            if kind == "star":
                found.append(f"*{value}")
            elif kind == "stars":
                found.append(f"**{value}")
            else:
                found.append(f"{one.arg}={value}" if kind == "keyword" else value)
        return found

    def _argument(self, module: str, path: str, one: ast.arg, *, unwraps: bool) -> str:
        if self._is_on_lost(module, one):
            return '"signal"'
        given = ARGUMENTS.get(f"{path}.{one.arg}")
        if given is not None:
            self._names.add("in_caller", PORTAL, "in_caller")
            return given
        if one.arg in CALLBACKS:
            self._names.add("own_thread", PORTAL, "own_thread")
            call = f'own_thread({one.arg}, "etcd_aio.{CALLBACKS[one.arg]}")'
            return f"None if {one.arg} is None else {call}"
        if unwraps and self._annotations.has_facade(module, one.annotation):
            self._names.add("unwrap", PORTAL, "unwrap")
            return f"unwrap({one.arg})"
        return one.arg

    # Members.

    def member(self, one: Class, member: Member) -> str:
        """A member of a class."""
        if not member.functions:
            return self._attribute(one, member)
        if member.is_property:
            return self._property(member)
        return "\n\n".join([*(self._overload(member, inner) for inner in member.overloads), self._method(one, member)])

    def _attribute(self, one: Class, member: Member) -> str:
        assert member.annotation is not None
        returned = self.type_text(member.owner.module, member.annotation, member.types)
        documented = _attribute_words(one, member.name)
        return self._read(member, member.annotation, returned, documented)

    def _property(self, member: Member) -> str:
        function = member.main
        assert function.returns is not None
        returned = self.type_text(member.owner.module, function.returns, member.types)
        text = self._read(member, function.returns, returned, ast.get_docstring(function) or "")
        if member.has_setter:
            setter = member.functions[1]
            name, value = member.name, setter.args.args[1].arg
            signature = self.signature(member.owner.module, setter, member.types)
            text += f"\n\n@{name}.setter\ndef {name}({signature}) -> None:\n"
            text += f'    self._run(setattr, self._aio, "{name}", {value})\n'
        return text

    def _read(self, member: Member, annotation: ast.expr, returned: str, documentation: str) -> str:
        value = f"self._aio.{member.name}"
        if f"{member.owner.name}.{member.name}" in IN_LOOP:
            value = f'self._run(getattr, self._aio, "{member.name}")'
        named = self._choice.sources.find_expression(member.owner.module, annotation)
        if named is not None and named.path in SURVIVES_FORK:
            value = f'self._part("{member.name}")'
        elif self._annotations.has_facade(member.owner.module, annotation):
            value = f"self._wrap({value})"
        return f"@property\ndef {member.name}(self) -> {returned}:\n{docstring(documentation, 8)}    return {value}\n"

    def _overload(self, member: Member, function: Function) -> str:
        self._names.add("overload", "typing", "overload")
        return f"@overload\n{self._head(member, function)} ..."

    def _head(self, member: Member, function: Function) -> str:
        module = member.owner.module
        assert function.returns is not None, function.name
        returned = self.type_text(module, function.returns, member.types)
        if decorators(function) & {"contextmanager", "asynccontextmanager"}:
            self._names.add("AbstractContextManager", "contextlib", "AbstractContextManager")
            returned = "AbstractContextManager" + returned[returned.index("[") :]
            self._names.imports.pop("Iterator", None)
        name = RENAMED.get(function.name, function.name)
        is_of_class = "classmethod" in decorators(function)
        first = "cls" if is_of_class else "self"
        prefix = "@classmethod\n" if is_of_class else ""
        signature = self.signature(module, function, member.types, owner=member.owner.name, first=first)
        return f"{prefix}def {name}({signature}) -> {returned}:"

    def _method(self, one: Class, member: Member) -> str:
        function = member.main
        documentation = docstring(ast.get_docstring(function) or "", 8)
        return f"{self._head(member, function)}\n{documentation}{textwrap.indent(self._body(one, member), '    ')}\n"

    def _body(self, one: Class, member: Member) -> str:
        function, module, owner = member.main, member.owner.module, member.owner.name
        path = f"{owner}.{function.name}"
        for name, place in NAMES.get(path, {}).items():
            self._names.add(name, place, name)
        if path in BODIES:
            return textwrap.dedent(BODIES[path]).strip()
        returns = ast.unparse(function.returns) if function.returns is not None else "None"
        has_facade = self._annotations.has_facade(module, function.returns)
        is_coroutine = isinstance(function, ast.AsyncFunctionDef)
        is_direct = path in DIRECT or (owner in THREAD_SAFE and not is_coroutine)
        if has_facade and not is_coroutine and not is_direct:
            arguments = self.arguments(module, owner, function, unwraps=False)
            tells = "._telling(on_lost)" if any(one.arg == "on_lost" for one, _ in parameters(function)) else ""
            return f"return self._made({', '.join([repr(function.name), *arguments])}){tells}"
        arguments = self.arguments(module, owner, function)
        if function.name.startswith("__"):
            call = _special(function.name, arguments)
        elif is_direct:
            call = f"self._aio.{function.name}({', '.join(arguments)})"
        elif function.name == "aclose":
            call = "self._end(self._aio.aclose)"
        else:
            call = f"self._run({', '.join([f'self._aio.{function.name}', *arguments])})"
        if returns == "Self":
            return f"{call}\nreturn self"
        if returns == "NoReturn":
            return f'{call}\nraise AssertionError("it ends by an exception")'
        if returns == "None":
            return call
        return f"return self._wrap({call})" if has_facade else f"return {call}"

    def constructor(self, one: Class, found: tuple[Class, Function]) -> str:
        """The constructor of a class that programs construct."""
        owner, function = found
        module, name = owner.definition.module, one.definition.name
        types = owner.types(one)
        self._names.add(f"Async{name}", self._annotations.home(one.definition), name)
        store, *others = self.arguments(module, name, function, unwraps=False)
        head = f"def __init__({self.signature(module, function, types)}) -> None:"
        body = f"self._construct({', '.join([f'Async{name}', store, *others])})"
        if "on_lost" in {one.arg for one, _ in parameters(function)}:
            body += "\n    self._telling(on_lost)"
        return f"{head}\n    {body}\n"

    def function(self, definition: Definition) -> str:
        """A function that takes a store first."""
        node = definition.node
        assert isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        assert node.returns is not None
        module, name = definition.module, node.name
        self._names.add(f"async_{name}", self._annotations.home(definition), name)
        returned = self.type_text(module, node.returns, {}, is_quoted=False)
        head = f"def {name}({self.signature(module, node, {}, first='')}) -> {returned}:"
        store = parameters(node)[0][0].arg
        if self._annotations.has_facade(module, node.returns):
            given = self.arguments(module, "", node, unwraps=False)
            body = (
                f"    made = {returned}.__new__({returned})\n"
                f"    made._construct(async_{name}, {', '.join(given)})\n    return made"
            )
        else:
            self._names.add("facade_of_store", PORTAL, "facade_of_store")
            body = (
                f"    return facade_of_store({store})._run(async_{name}, {', '.join(self.arguments(module, '', node))})"
            )
        return f"{head}\n{docstring(ast.get_docstring(node) or '', 4)}{body}\n"

    def protocol_method(self, member: Member) -> str:
        """A method of a protocol."""
        documentation = docstring(ast.get_docstring(member.main) or "", 8)
        return f"{self._head(member, member.main)}\n{documentation}    ...\n"


def _special(name: str, arguments: list[str]) -> str:
    return {
        "__len__": "len(self._aio)",
        "__bool__": "bool(self._aio)",
        "__contains__": f"{arguments[0] if arguments else ''} in self._aio",
        "__getitem__": f"self._aio[{arguments[0] if arguments else ''}]",
    }[name]


def _attribute_words(one: Class, name: str) -> str:
    """The documentation of an attribute, in the section of its class."""
    for inner in one.order:
        section = (ast.get_docstring(inner.node) or "").partition("Attributes:\n")[2]
        lines = section.split("\n")
        for place, line in enumerate(lines):
            if line.startswith(f"    {name}: "):
                words = [line.partition(": ")[2]]
                for more in lines[place + 1 :]:
                    if not more.startswith("        "):
                        break
                    words.append(more.strip())
                text = " ".join(words)
                summary, _, rest = (text[0].upper() + text[1:]).partition(". ")
                if len(summary) > _SUMMARY:
                    summary, _, rest = summary.partition("; ")
                    rest = rest[0].upper() + rest[1:]
                return f"{summary}.\n\n" + "\n".join(textwrap.wrap(rest, 112)) if rest else summary
    return ""


def docstring(text: str, columns: int) -> str:
    """A docstring for blocking code, at its place in a method, or in a function."""
    if not text:
        return ""
    text = blocking(text, columns)
    return class_docstring(text)


def class_docstring(text: str) -> str:
    """A docstring that is rewritten already, with quotes, indented by four."""
    if not text:
        return ""
    prefix = "r" if "\\" in text else ""
    lines = f'{prefix}"""{text}' + ('\n"""' if "\n" in text else '"""')
    return textwrap.indent(lines, "    ") + "\n"


def documentation_of(one: Class, *, is_constructed: bool) -> str:
    """The docstring of a class; with the arguments if programs construct it."""
    text = ast.get_docstring(one.node) or ""
    if not is_constructed:
        text = without_section(text, "Args")
    text = without_section(text, "Attributes")
    if one.definition.path == f"{LIBRARY}.client.Client":
        text = text.replace("\n\nRaises:", f"\n{_ALLOW}\n\nRaises:")
    return blocking(text, 4)


_ALLOW = """\
    allow_in_loop: let calls block a thread in which an event loop runs. Default: False, such a call raises
        `BlockingInLoopError`, since the loop would stand still: use `etcd_aio.Client` there."""
