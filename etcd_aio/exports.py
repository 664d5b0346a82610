"""The `__all__` of a public package: the names that its `__init__` imports, so that each of them is written once.

In every `__init__` of the library, `import A as A` exports A. This is all that type checkers and editors need, so
`__all__` is hidden from them: declared without a list, it would export nothing. At run time, `from package import *`
would also take the submodules, which `__all__` leaves out.
"""

from collections.abc import Collection, Mapping
from types import ModuleType
from typing import Final

_TOOLS: Final = frozenset({"TYPE_CHECKING", "public_names"})


def public_names(namespace: Mapping[str, object], *, internal: Collection[str] = ()) -> list[str]:
    """The names in the globals of a package, sorted, without modules and private names.

    Args:
        namespace: the globals.
        internal: names that other packages of the library import, and that are not public.
    """
    return sorted(
        name
        for name, value in namespace.items()
        if not (name.startswith("_") or isinstance(value, ModuleType) or name in _TOOLS or name in internal)
    )
