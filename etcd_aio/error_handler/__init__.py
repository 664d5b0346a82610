"""Error handler: the layer that handles failures, so that most of them never reach the caller.

It has the decision tables, the attempts of calls, the supervision of streams, waits and budgets, the token, and the
client's lifetime. It never knows what a request means, how bytes travel, or where the endpoints come from.
"""

from typing import TYPE_CHECKING

from etcd_aio.exports import late_names

if TYPE_CHECKING:
    from etcd_aio.error_handler.credentials import Credentials as Credentials
    from etcd_aio.error_handler.credentials import TokenFunction as TokenFunction
    from etcd_aio.error_handler.credentials import credentials_from as credentials_from
    from etcd_aio.error_handler.invoker import Invoker as Invoker
    from etcd_aio.error_handler.lifetime import Lifetime as Lifetime
    from etcd_aio.error_handler.message_loading import load_messages as load_messages
    from etcd_aio.error_handler.retry_policy import RetryPolicy as RetryPolicy
    from etcd_aio.error_handler.retry_policy import RetryThrottling as RetryThrottling
    from etcd_aio.error_handler.stream_handler import StreamHandler as StreamHandler
    from etcd_aio.error_handler.stream_supervisor import StreamSupervisor as StreamSupervisor
    from etcd_aio.error_handler.streamed_reply import StreamedReply as StreamedReply
else:
    __getattr__, __dir__, __all__ = late_names(__name__)
