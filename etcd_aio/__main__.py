"""`python -m etcd_aio` is the command line `etcd-aio`."""

import sys

from etcd_aio.cli import main

if __name__ == "__main__":
    sys.exit(main())
