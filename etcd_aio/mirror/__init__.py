"""Mirrors: copies of a prefix in another cluster, and reads of a prefix with all its changes. Imported at first use.

`mirror.py` copies a prefix: `base_copy.py` makes both sides equal, `batching.py` makes the txns, `writer.py` sends
them, and `checkpoint.py` has the argument why nothing is lost. `follow.py` reads a prefix and all its changes.
"""

from typing import TYPE_CHECKING

from etcd_aio.exports import late_names

if TYPE_CHECKING:
    from etcd_aio.mirror.checkpoint import Checkpoint as Checkpoint
    from etcd_aio.mirror.follow import Follow as Follow
    from etcd_aio.mirror.follow import MirrorBatch as MirrorBatch
    from etcd_aio.mirror.follow import follow as follow
    from etcd_aio.mirror.mirror import Mirror as Mirror
    from etcd_aio.mirror.mirror import MirrorStatistics as MirrorStatistics
else:
    __getattr__, __dir__, __all__ = late_names(__name__)
