"""The runner: `python -m etcd_aio.compat etcd3 -- program.py arguments`, or `-- -m module arguments`."""

import os
import runpy
import sys
from collections.abc import Sequence
from typing import Final

from etcd_aio.compat import CLIENTS, install

_USAGE: Final = f"""\
usage: python -m etcd_aio.compat CLIENT... -- PROGRAM [ARGUMENT...]
       python -m etcd_aio.compat CLIENT... -- -m MODULE [ARGUMENT...]

Runs a Python program with the API of another etcd client on etcd_aio.
CLIENT is what the program imports: {", ".join(CLIENTS)}.
"""


def main(arguments: Sequence[str]) -> int:
    """Install the named clients, and run the program as `python` itself does. Returns the exit code of a mistake."""
    names, program = _split(arguments)
    if names and set(names) <= CLIENTS.keys() and program and program != ["-m"]:
        install(*names)
        _run(program)
        return 0
    wants_help = bool({"-h", "--help"} & set(names))
    (sys.stdout if wants_help else sys.stderr).write(_USAGE)
    return 0 if wants_help else 2


def _split(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """The clients, and the program with its arguments."""
    at = arguments.index("--") if "--" in arguments else len(arguments)
    return list(arguments[:at]), list(arguments[at + 1 :])


def _run(program: list[str]) -> None:
    # With `-m`, Python has put the current folder in front of the path; a program has its own folder there.
    if program[0] == "-m":
        sys.argv = program[1:]
        runpy.run_module(program[1], run_name="__main__", alter_sys=True)
        return
    sys.argv = program
    sys.path[0] = os.path.dirname(os.path.realpath(program[0]))  # noqa: PTH120 - as Python does it
    runpy.run_path(program[0], run_name="__main__")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
