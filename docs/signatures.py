"""Makes the reference readable: a default that is a constant is shown as its value; internal members are left out."""

from typing import Any, Final

import griffe

from release.late import LateDataclasses
from release.public import INTERNAL

OMITTED: Final = "..."
"""Stands for UNSET; the docstring says what the default is."""


class Readable(LateDataclasses):
    """Replaces `UNSET` by `...`, and names in capitals by their values; removes internal members of public classes."""

    def on_package(self, *, pkg: griffe.Module, **kwargs: Any) -> None:
        """Change a package. griffe calls this when everything is loaded, so names can be looked up."""
        replace(pkg)
        hide(pkg)


def hide(package: griffe.Module) -> None:
    """Remove the internal members of public classes."""
    for name in INTERNAL:
        path, _, member = name.rpartition(".")
        if path.partition(".")[0] != package.name:
            continue
        owner = package[path.partition(".")[2]]
        owner = owner.final_target if isinstance(owner, griffe.Alias) else owner
        if isinstance(owner, griffe.Class):
            owner.members.pop(member, None)


def replace(owner: griffe.Module | griffe.Class) -> None:
    """Replace the defaults of every function below."""
    for member in owner.members.values():
        if isinstance(member, griffe.Function):
            for parameter in member.parameters:
                default = str(parameter.default)
                if default.isidentifier() and default.isupper():
                    parameter.default = shown(owner, default)
        elif isinstance(member, griffe.Class | griffe.Module):
            replace(member)


def shown(owner: griffe.Object, name: str) -> str:
    """The text for a constant: its value in the code, the dots for UNSET, or its name if another library defines it."""
    if name == "UNSET":
        return OMITTED
    constant = owner.module[name]
    try:
        target = constant.final_target if isinstance(constant, griffe.Alias) else constant
    except griffe.AliasResolutionError:  # of another library, which has no page here
        return name
    if not isinstance(target, griffe.Attribute):
        raise TypeError(name)
    return str(target.value)
