"""The `__all__` of a public package: the names that its `__init__` imports, so that each of them is written once.

In every `__init__` of the library, `import A as A` exports A. This is all that type checkers and editors need, so
`__all__` is hidden from them: declared without a list, it would export nothing. At run time, `from package import *`
would also take the submodules, which `__all__` leaves out.
"""

from collections.abc import Mapping
from types import ModuleType
from typing import Final

_TOOLS: Final = frozenset({"TYPE_CHECKING", "public_names"})


def public_names(namespace: Mapping[str, object]) -> list[str]:
    """The names in the globals of a package, sorted, without modules and private names."""
    return sorted(
        name
        for name, value in namespace.items()
        if not name.startswith("_") and not isinstance(value, ModuleType) and name not in _TOOLS
    )
