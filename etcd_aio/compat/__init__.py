"""Compat: the APIs of other etcd clients, on etcd_aio, so that programs written for them run unchanged.

    import etcd_aio.compat
    etcd_aio.compat.install("etcd3")

    import etcd3                     # python-etcd3's API, without grpcio and protobuf

`python -m etcd_aio.compat etcd3 -- program.py` does the same for a program that is not to be touched.
"""

from typing import TYPE_CHECKING

from etcd_aio.exports import late_names

if TYPE_CHECKING:
    from etcd_aio.compat.clients import CLIENTS as CLIENTS
    from etcd_aio.compat.clients import install as install
else:
    __getattr__, __dir__, __all__ = late_names(__name__)
