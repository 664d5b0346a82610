"""Error handler (floor 5): what is done about failures, so that most of them never reach the caller.

What belongs here: the verdict tables, the attempts of a call, the supervision of streams, backoff, budget, the
cluster's identity, the client's lifetime. What never does: what a request means, how bytes travel, which endpoints
there are.
"""

from etcd_aio.error_handler.credentials import Credentials, TokenFunction, credentials_from
from etcd_aio.error_handler.invoker import Invoker
from etcd_aio.error_handler.lifetime import Lifetime
from etcd_aio.error_handler.outcome import unexpected_error
from etcd_aio.error_handler.retry import RetryPolicy, RetryThrottling
from etcd_aio.error_handler.stream_handler import StreamHandler
from etcd_aio.error_handler.stream_history import StreamStatistics
from etcd_aio.error_handler.streamed_reply import StreamedReply
from etcd_aio.error_handler.supervisor import StreamSupervisor

__all__ = [
    "Credentials",
    "Invoker",
    "Lifetime",
    "RetryPolicy",
    "RetryThrottling",
    "StreamHandler",
    "StreamStatistics",
    "StreamSupervisor",
    "StreamedReply",
    "TokenFunction",
    "credentials_from",
    "unexpected_error",
]
