"""The command `python -m etcd_aio.contrib.patroni install`, `uninstall` or `status`."""

import argparse
import sys
from collections.abc import Sequence

from etcd_aio.contrib.patroni.install import InstallError, folder, install, is_installed, uninstall


def main(words: Sequence[str] | None = None) -> int:
    """Run the command. Returns its exit status."""
    parser = argparse.ArgumentParser(prog="python -m etcd_aio.contrib.patroni", description=__doc__)
    parser.add_argument("action", choices=("install", "uninstall", "status"))
    action = parser.parse_args(words).action
    try:
        where = folder()
        if action == "status":
            print("installed" if is_installed(where) else "not installed", "in", where)  # noqa: T201 - a command
        else:
            print((install if action == "install" else uninstall)(where))  # noqa: T201 - a command
    except (InstallError, OSError, ModuleNotFoundError) as error:
        print(error, file=sys.stderr)  # noqa: T201 - a command
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
