"""Error handler: the layer that handles failures, so that most of them never reach the caller.

It has the decision tables, the attempts of calls, the supervision of streams, waits and budgets, the token, and the
client's lifetime. It never knows what a request means, how bytes travel, or where the endpoints come from.
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
