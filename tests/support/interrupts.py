"""Children that react to Ctrl-C, whatever the shell that runs the tests does with it.

A shell that starts a command in the background has it ignore SIGINT, which every child inherits: Python then installs
no handler, and the child can be waited for in vain.
"""

import sys
from typing import Final

_RESTORE: Final = (
    "import os, signal, sys; signal.signal(signal.SIGINT, signal.SIG_DFL); os.execv(sys.executable, sys.argv[1:])"
)


def interruptible(*arguments: str) -> list[str]:
    """The command that runs this Python with `arguments`, and SIGINT as Python expects it."""
    return [sys.executable, "-c", _RESTORE, sys.executable, *arguments]
