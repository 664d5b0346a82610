"""`python -m etcd_aio.contrib.torch ...`: torchrun with the backend, for an old torch that has no entry points."""

import sys

from etcd_aio.contrib.missing import missing
from etcd_aio.contrib.torch import register

try:
    from torch.distributed.run import main  # pyright: ignore[reportMissingImports] - not installed by us
except ModuleNotFoundError as error:
    if (error.name or "").partition(".")[0] != "torch":
        raise
    sys.exit(str(missing("etcd_aio.contrib.torch", "torch", error)))

register()
main()
