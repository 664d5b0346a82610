"""`python -m etcd_aio.contrib.torch ...`: torchrun with the backend, for an old torch that has no entry points."""

from torch.distributed.run import main  # pyright: ignore[reportMissingImports]

from etcd_aio.contrib.torch import register

register()
main()
