"""The command line `etcd-aio`: etcdctl's verbs, flags, variables, output formats and exit codes, on this client.

`grammar.py` has the parser; `program.py` has the table of verbs, and runs one; `connection.py` makes the client from
flags and variables. Each group of verbs is one file, imported when it runs. Verbs make results, and the `format_*`
files turn these into text. All but `--version` and `version` needs `pip install 'etcd_aio[cli]'`.
"""

import gc
import os
import sys


def main() -> int:
    """Run the command line on the arguments of this process. Returns the exit code."""
    gc.disable()  # until the verb runs: a twentieth of the time of a short command, and there is no garbage yet
    try:
        return _run()
    finally:
        gc.enable()


def _run() -> int:
    _open_what_is_closed()
    if sys.argv[1:] in (["--version"], ["version"]):
        from etcd_aio.cli.versions import version_lines

        sys.stdout.writelines(f"{line}\n" for line in version_lines())
        return 0
    try:
        from etcd_aio.cli.program import run

        return run(sys.argv[1:])
    except ModuleNotFoundError as error:
        if error.name != "click":
            raise
        sys.stderr.write("etcd-aio needs click: pip install 'etcd_aio[cli]'\n")
        return 1
    except KeyboardInterrupt:  # before, or behind, what a verb does
        return 5


def _open_what_is_closed() -> None:
    """Let stdin, stdout and stderr be there: else the next socket would be one of them, also to child processes."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            # The lowest descriptor that is free is the one that is missing. It stays open for good.
            number = os.open(os.devnull, os.O_RDWR)
            os.set_inheritable(number, True)
            setattr(sys, name, os.fdopen(number, mode, encoding="utf-8"))
