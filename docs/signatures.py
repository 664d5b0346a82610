"""Signatures as readers need them: a default that is a constant of the code is shown as what it stands for."""

from typing import Any, Final

import griffe

OMITTED: Final = "..."
"""In place of a default that only says "not given"; the docstring says what holds then."""


class Defaults(griffe.Extension):
    """Replaces `UNSET` by `...`, and names in capitals by their values."""

    def on_package(self, *, pkg: griffe.Module, **kwargs: Any) -> None:
        """See griffe: everything is loaded by now, so every name can be looked up."""
        replace(pkg)


def replace(owner: griffe.Module | griffe.Class) -> None:
    """Replace the defaults of every function below."""
    for member in owner.members.values():
        if isinstance(member, griffe.Function):
            for parameter in member.parameters:
                if str(parameter.default).isupper():
                    parameter.default = shown(owner, str(parameter.default))
        elif isinstance(member, griffe.Class | griffe.Module):
            replace(member)


def shown(owner: griffe.Object, name: str) -> str:
    """What stands for a constant: its value as it is written in the code, or the dots."""
    if name == "UNSET":
        return OMITTED
    constant = owner.module[name]
    found = constant.final_target if isinstance(constant, griffe.Alias) else constant
    if not isinstance(found, griffe.Attribute):
        raise TypeError(name)
    return str(found.value)
