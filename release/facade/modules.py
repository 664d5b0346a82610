"""Modules: the text of each generated module: its imports, classes and functions."""

import ast
import subprocess
import sys
import textwrap
from collections.abc import Iterable
from pathlib import Path

from release.facade import tables
from release.facade.annotations import Names
from release.facade.choice import SYNC, Choice, home
from release.facade.classes import Class, Member
from release.facade.methods import PORTAL, Writer, class_docstring, documentation_of
from release.facade.sources import LIBRARY, Definition

HEAD = "Made by `python -m release.facade --write` from `{source}`: do not edit."


class Modules:
    """All generated modules.

    Args:
        choice: what they have.
    """

    def __init__(self, choice: Choice) -> None:
        self._choice = choice
        self._content: dict[str, list[Class | Definition]] = {}
        for one in choice.classes.values():
            self._content.setdefault(home(one.definition.module), []).append(one)
        for function in choice.functions.values():
            self._content.setdefault(home(function.module), []).append(function)

    def texts(self) -> dict[str, str]:
        """The text of each module, by its name, before it is formatted; packages end with `.__init__`."""
        packages = {name.rpartition(".")[0] for name in self._content} | {
            name.rpartition(".")[0] for name in self._choice.exported
        }
        for package in tuple(packages):
            while package != SYNC and package.startswith(SYNC):
                package = package.rpartition(".")[0]
                packages.add(package)
        packages -= self._content.keys()
        found = {name: self._module(name, content) for name, content in self._content.items()}
        found.update({f"{name}.__init__": self._package(name) for name in packages if name.startswith(SYNC)})
        found[f"{SYNC}._facades"] = self._table()
        return found

    # Packages.

    def _package(self, name: str) -> str:
        source = LIBRARY + name.removeprefix(SYNC)
        package = self._choice.sources.module(source)
        assert package is not None
        lines = []
        for path, definition in sorted(self._choice.exported.items()):
            module, _, exported = path.rpartition(".")
            if module == name:
                lines.append(f"    from {home(definition.module)} import {exported} as {exported}")
        lines += [
            f"    from {name} import {imported.name} as {imported.name}"
            for imported in package.imports.values()
            if imported.module == source and f"{name}.{imported.name}" in self._content and name != SYNC
        ]
        if name == SYNC:
            return _ROOT.replace("IMPORTS", "\n".join(lines))
        words = _PACKAGES.get(name.removeprefix(f"{SYNC}."), f"The blocking classes for those of `{source}`.")
        head = f'"""{words}\n\n{HEAD.format(source=source)}\n"""\n'
        if not lines:
            return head
        return (
            head
            + "\nfrom typing import TYPE_CHECKING\n\nfrom etcd_aio.exports import late_names\n\nif TYPE_CHECKING:\n"
            + "\n".join(lines)
            + "\nelse:\n    __getattr__, __dir__, __all__ = late_names(__name__)\n"
        )

    def _table(self) -> str:
        lines = [
            f'    "{path}": "{home(one.definition.module)}:{one.definition.name}",'
            for path, one in sorted(self._choice.classes.items())
            if path not in tables.PROTOCOLS and path != tables.OPTIONS
        ]
        text = "\n".join(lines)
        return _TABLE.replace("LINES", text)

    # Modules.

    def _module(self, name: str, content: Iterable[Class | Definition]) -> str:
        content = sorted(content, key=lambda one: _node(one).lineno)
        names = Names(name)
        self._parts(names, content)  # finds the names
        parts = self._parts(names, content)
        source = LIBRARY + name.removeprefix(SYNC)
        titles = [_name(one) + ("" if isinstance(one, Class) else "()") for one in content]
        title = titles[0] if len(titles) == 1 else ", ".join(titles[:-1]) + " and " + titles[-1]
        head = f'"""{title}, for blocking code.\n\n{HEAD.format(source=source)}\n"""\n\n'
        return head + _imports(names) + "\n".join(names.variables.values()) + "\n\n" + "\n\n\n".join(parts)

    def _parts(self, names: Names, content: Iterable[Class | Definition]) -> list[str]:
        local = frozenset(map(_name, content))
        writer = Writer(self._choice, names, local)
        return [self._class(writer, names, one) if isinstance(one, Class) else writer.function(one) for one in content]

    def _class(self, writer: Writer, names: Names, one: Class) -> str:
        path, name = one.definition.path, one.definition.name
        if path in tables.PROTOCOLS:
            return self._protocol(writer, names, one)
        if path == tables.OPTIONS:
            return self._options(writer, names, one)
        lines = [f"class {name}({', '.join(self._bases(writer, names, one))}):"]
        is_constructed = path in tables.CONSTRUCTED or path in _BY_HAND
        lines.append(class_docstring(documentation_of(one, is_constructed=is_constructed)))
        if path in tables.SURVIVES_FORK:
            names.add("ClassVar", "typing", "ClassVar")
            lines.append("    _survives_fork: ClassVar[bool] = True\n")
        parts = []
        constructor = one.function("__init__")
        if path in _BY_HAND:
            parts.append(self._constructor_by_hand(writer, names, one))
        elif path in tables.CONSTRUCTED:
            assert constructor is not None
            parts.append(writer.constructor(one, constructor))
        enter = one.own_function("__aenter__")
        entered = one.function("__aenter__")
        if entered is not None and ast.unparse(entered[1].returns or ast.Constant(None)) == "Self":
            has_base = bool(self._choice.facade_base(one))
            if (not has_base or enter is not None) and path not in _BY_HAND:
                names.add("Self", "typing", "Self")
                parts.append("def __enter__(self) -> Self:\n    super().__enter__()\n    return self\n")
        members = {member.name: member for member in self._choice.members(one)}
        for inner in one.order:
            for key, annotation in tables.ATTRIBUTES.items():
                owner, _, attribute = key.partition(".")
                if owner == inner.definition.name and not self._choice.facade_base(one):
                    node = ast.parse(annotation, mode="eval").body
                    members[attribute] = Member(inner.definition, attribute, annotation=node)
        parts += [writer.member(one, member) for member in members.values()]
        lines.append(textwrap.indent("\n\n".join(parts), "    ", lambda line: bool(line.strip())))
        return "\n".join(lines)

    def _protocol(self, writer: Writer, names: Names, one: Class) -> str:
        names.add("Protocol", "typing", "Protocol")
        head = (
            f"class {one.definition.name}(Protocol):\n{class_docstring(documentation_of(one, is_constructed=False))}\n"
        )
        parts = [writer.protocol_method(member) for member in self._choice.members(one)]
        return head + textwrap.indent("\n\n".join(parts), "    ", lambda line: bool(line.strip()))

    def _options(self, writer: Writer, names: Names, one: Class) -> str:
        names.add("TypedDict", "typing", "TypedDict")
        lines = [f"class {one.definition.name}(TypedDict, total=False):"]
        lines.append(class_docstring(documentation_of(one, is_constructed=True)))
        for node in one.node.body:
            if isinstance(node, ast.AnnAssign):
                annotation = writer.type_text(one.definition.module, node.annotation, {})
                lines.append(f"    {ast.unparse(node.target)}: {annotation}")
        return "\n".join([*lines, "    allow_in_loop: bool"])

    def _constructor_by_hand(self, writer: Writer, names: Names, one: Class) -> str:
        _, template, extra = _BY_HAND[one.definition.path]
        found = one.function("__init__")
        assert found is not None
        owner, function = found
        module = owner.definition.module
        names.add(f"Async{one.definition.name}", self._choice.annotations.home(one.definition), one.definition.name)
        arguments = ", ".join(writer.arguments(module, one.definition.name, function))
        signature = writer.signature(module, function, {}, extra=extra)
        return f"def __init__({signature}) -> None:\n    {template.format(arguments)}\n"

    def _bases(self, writer: Writer, names: Names, one: Class) -> list[str]:
        found = []
        name = one.definition.name
        for base, node in self._choice.facade_base(one):
            found.append(writer.type_text(one.definition.module, node, {}, is_quoted=False))
            place = home(base.definition.module)
            if place != names.module:
                names.add(base.definition.name, place, base.definition.name)
        if one.definition.path in _BY_HAND:
            module = _BY_HAND[one.definition.path][0]
            base_name = module.rpartition(".")[2].title().replace("_", "")
            return [names.add(base_name, module, base_name), *found]
        item = self._item(writer, one)
        is_inherited = bool(found)
        entered = one.function("__aenter__")
        is_block = entered is not None and ast.unparse(entered[1].returns or ast.Constant(None)) == "Self"
        if name in tables.LOSABLE:
            found.append(names.add("Losable", PORTAL, "Losable"))
        elif not is_inherited:
            if is_block:
                found.append(names.add("Block", PORTAL, "Block"))
            if name in tables.LOSABLE_MAKERS:
                found.insert(0, names.add("LosableMaker", PORTAL, "LosableMaker"))
        if item is not None and not is_inherited:
            buffered = any(inner.own_function("take_ready") for inner in one.order)
            base_name = "BufferedIterator" if buffered else "BlockingIterator"
            found.append(f"{names.add(base_name, PORTAL, base_name)}[{item}]")
        if not found:
            found.append(names.add("Facade", PORTAL, "Facade"))
        if one.variables and item is None:
            names.add("Generic", "typing", "Generic")
            for variable in one.variables:
                writer.type_text(one.definition.module, ast.Name(variable), {})
            if not is_inherited and any(_mentions_variables(base) for base in one.node.bases):
                found.append(f"Generic[{', '.join(one.variables)}]")
        return found

    def _item(self, writer: Writer, one: Class) -> str | None:
        """The type of the items of an iterator."""
        for inner in one.order:
            for base in inner.node.bases:
                if isinstance(base, ast.Subscript) and ast.unparse(base.value) == "AsyncIterator":
                    return writer.type_text(inner.definition.module, base.slice, inner.types(one))
            function = inner.own_function("__anext__")
            if function is not None:
                assert function.returns is not None
                return writer.type_text(inner.definition.module, function.returns, inner.types(one))
        return None


def _node(one: Class | Definition) -> ast.stmt:
    return one.node


def _name(one: Class | Definition) -> str:
    return one.definition.name if isinstance(one, Class) else one.name


def _mentions_variables(base: ast.expr) -> bool:
    return isinstance(base, ast.Subscript)


def _imports(names: Names) -> str:
    lines = []
    for name, (module, original) in names.imports.items():
        if module == names.module:
            continue
        if not original:
            lines.append(f"import {module}")
        else:
            lines.append(f"from {module} import {original}" + (f" as {name}" if name != original else ""))
    late = [
        f"    from {module} import {original}" for module, original in names.late.values() if module != names.module
    ]
    if late:
        lines.append("from typing import TYPE_CHECKING")
    text = "\n".join(sorted(set(lines))) + "\n"
    return text + ("\nif TYPE_CHECKING:\n" + "\n".join(sorted(set(late))) + "\n" if late else "") + "\n"


def formatted(texts: dict[str, str], root: Path) -> dict[Path, str]:
    """The texts as ruff sorts and formats them, by their paths."""
    found = {}
    for name, text in texts.items():
        path = root.joinpath(*name.split(".")).with_suffix(".py")
        for arguments in (["check", "--quiet", "--select", "I,F401", "--fix-only"], ["format", "--quiet"]):
            command = [sys.executable, "-m", "ruff", *arguments, "--stdin-filename", str(path), "-"]
            done = subprocess.run(command, input=text, capture_output=True, text=True, check=False, cwd=root)
            if done.returncode:
                raise RuntimeError(f"{path}: {done.stderr}\n{text}")
            text = done.stdout
        found[path] = text
    return found


_PACKAGES: dict[str, str] = {}
_BY_HAND: dict[str, tuple[str, str, str]] = {
    "etcd_aio.client.Client": (
        f"{SYNC}.base_client",
        "self._open(AsyncClient, allow_in_loop, {0})",
        "allow_in_loop: bool = False",
    ),
    "etcd_aio.fake.fake_etcd.FakeEtcd": (f"{SYNC}.base_fake", "self._object = AsyncFakeEtcd({0})", ""),
}
"""Classes that programs construct without a store: the module of their base, the constructor, and a parameter of it."""

_TABLE = '''\
"""The classes of asyncio, and where their blocking ones are.

Made by `python -m release.facade --write`: do not edit.
"""

from etcd_aio.portal import register

PLACES = {
LINES
}


def register_all() -> None:
    """Let portals find the blocking classes."""
    register(PLACES)
'''

_ROOT = '''\
"""etcd_aio.sync: the same client for code that blocks.

    with Client("http://m1:2379,http://m2:2379,http://m3:2379") as client:
        client.put("greeting", "hello")
        kv = client.get("greeting")

Each class here stands for the asyncio class of the same name, and has its methods; `etcd_aio.sync.recipes` stands for
`etcd_aio.recipes`, and so on. Whatever does not wait is used as it is, from `etcd_aio`: results, operations, `Compare`,
`TLS`, errors.

Made by `python -m release.facade --write`: do not edit.
"""

from typing import TYPE_CHECKING

from etcd_aio.exports import late_names
from etcd_aio.sync import _facades

if TYPE_CHECKING:
IMPORTS
else:
    __getattr__, __dir__, __all__ = late_names(__name__)

_facades.register_all()
'''
