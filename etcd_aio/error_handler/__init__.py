"""Error handler (floor 5): what is done about failures, so that most of them never reach the caller.

What belongs here: the verdict table, the attempts of a call, backoff, budget, the cluster's identity, the client's
lifetime. What never does: what a request means, how bytes travel, which endpoints there are.
"""

from etcd_aio.error_handler.identity import ClusterIdentity
from etcd_aio.error_handler.invoker import Invoker
from etcd_aio.error_handler.lifetime import Lifetime
from etcd_aio.error_handler.retry import RetryPolicy, RetryThrottling

__all__ = ["ClusterIdentity", "Invoker", "Lifetime", "RetryPolicy", "RetryThrottling"]
