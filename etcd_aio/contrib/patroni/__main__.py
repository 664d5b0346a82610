"""The command `python -m etcd_aio.contrib.patroni install`, `uninstall` or `status`."""

import argparse
import sys
from collections.abc import Sequence

from etcd_aio.contrib.patroni.install import InstallError, folder, install, is_installed, uninstall


def main(words: Sequence[str] | None = None) -> int:
    """Run the command. Returns its exit status: that of `status` is 1 if the module is not there."""
    parser = argparse.ArgumentParser(prog="python -m etcd_aio.contrib.patroni", description=__doc__)
    parser.add_argument("action", choices=("install", "uninstall", "status"))
    action = parser.parse_args(words).action
    try:
        where = folder()
        if action == "status":
            found = is_installed(where)
            print("installed" if found else "not installed", "in", where)  # noqa: T201 - a command
            return 0 if found else 1
        print((install if action == "install" else uninstall)(where))  # noqa: T201 - a command
    except (InstallError, OSError, ModuleNotFoundError) as error:
        print(error, file=sys.stderr)  # noqa: T201 - a command
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
