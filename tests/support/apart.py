"""A network and processes of its own for a command, where the machine allows it.

Tests of others have fixed ports, and leave servers behind when they fail.
"""

import subprocess
from collections.abc import Sequence
from functools import cache
from typing import Final

_APART: Final = ("unshare", "--net", "--pid", "--fork", "--kill-child", "--mount-proc")
# The shell stays as the first process: it takes orphans that have ended, which would else count as running for ever.
_WITH_LOOPBACK: Final = ("sh", "-c", 'ip link set lo up && "$@"; exit $?', "sh")


@cache
def is_apart() -> bool:
    """Whether this machine lets a command have its own network."""
    try:
        return subprocess.run([*_APART, "ip", "link"], capture_output=True, check=False).returncode == 0
    except OSError:
        return False


def apart(command: Sequence[str]) -> list[str]:
    """The command in a network of its own, with its loopback; as it is, if this machine has none for processes."""
    return [*_APART, *_WITH_LOOPBACK, *command] if is_apart() else [*command]
