"""The command line `etcd-aio`: etcdctl's verbs, flags, variables, output formats and exit codes, on this client.

`grammar.py` has the parser; `program.py` has the table of verbs, and runs one; `connection.py` makes the client from
flags and variables. Each group of verbs is one file, imported when it runs. Verbs make results, and the `format_*`
files turn these into text. All but `--version` needs `pip install 'etcd_aio[cli]'`.
"""

import sys


def main() -> int:
    """Run the command line on the arguments of this process. Returns the exit code."""
    if sys.argv[1:] == ["--version"]:
        from etcd_aio.cli.versions import version_lines

        sys.stdout.writelines(f"{line}\n" for line in version_lines())
        return 0
    try:
        from etcd_aio.cli.program import run
    except ModuleNotFoundError as error:
        if error.name != "click":
            raise
        sys.stderr.write("etcd-aio needs click: pip install 'etcd_aio[cli]'\n")
        return 1
    return run(sys.argv[1:])
