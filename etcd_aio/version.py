"""The version of this library; the one place where it stands."""

from typing import Final

__version__: Final = "0.1.0"
