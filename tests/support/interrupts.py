"""Child processes that react to SIGINT.

A shell makes background commands ignore SIGINT, and their children inherit that: Python then installs no handler.
"""

import sys
from typing import Final

_RESTORE: Final = (
    "import os, signal, sys; signal.signal(signal.SIGINT, signal.SIG_DFL); os.execv(sys.executable, sys.argv[1:])"
)


def interruptible(*arguments: str) -> list[str]:
    """The command that runs this Python with `arguments`, and SIGINT as Python expects it."""
    return [sys.executable, "-c", _RESTORE, sys.executable, *arguments]
