"""Stream history: what happened to one supervised stream; kept for its statistics, logged and reported to observers."""

import logging
from collections.abc import Callable
from typing import Final

from etcd_aio.base.deadline import NEVER
from etcd_aio.base.logs import log_of
from etcd_aio.error_handler.outcome import StreamEnd
from etcd_aio.errors import EtcdError, RetryHint
from etcd_aio.observing import StreamChange, StreamEvent
from etcd_aio.types import StreamStatistics

logger: Final = logging.getLogger("etcd_aio.streams")


class StreamHistory:
    """The history of one supervised stream.

    Args:
        method: name of the RPC.
        name: of the stream in the log.
        on_change: called with each change; None if that is not observed.
        client: name of the client; empty if it has none.

    Attributes:
        endpoint: where the stream is open; empty if it is not.
        since: the instant since which it is open, or is needed without being open; `NEVER` while it is not needed.
        last_error: why it was moved or lost the last time, or why it waits for a token.
    """

    def __init__(
        self, method: str, name: str, on_change: Callable[[StreamChange], None] | None, client: str = ""
    ) -> None:
        self._client = client
        self._log = log_of(logger, client)
        self._method = method
        self._name = name
        self._on_change = on_change
        self._lost_at = NEVER
        self.since = NEVER
        self._opened = 0
        self.endpoint = ""
        self.last_error: EtcdError | None = None

    def on_open(self, endpoint: str, now: float) -> None:
        """The stream is open."""
        self.endpoint = endpoint
        self.since = now
        self._opened += 1
        self._tell("opened", endpoint)

    def on_first_reply(self, now: float) -> None:
        """The server serves the stream."""
        if self._lost_at != NEVER:
            self._log.info(
                "stream %s: resumed at %s after %.3f s",
                self._name,
                self.endpoint,
                now - self._lost_at,
                extra=self._fields(self.endpoint),
            )
            self._lost_at = NEVER
            self._tell("resumed", self.endpoint)

    def on_close(self, now: float) -> float:
        """The stream is closed; returns the seconds for which it was open."""
        seconds = now - self.since
        self.endpoint = ""
        self.since = now
        return seconds

    def on_failure(self, end: StreamEnd, endpoint: str, now: float, *, is_routine: bool) -> None:
        """The stream ended although it is needed, or could not be opened.

        Args:
            end: the end of the stream.
            endpoint: the endpoint of the stream.
            now: the instant.
            is_routine: no part failed: the stream was left for a newer token, for a renewed connection, or for one
                request that was rejected.
        """
        self.last_error = end.error
        level = logging.DEBUG  # the repetitions of an outage
        if self._lost_at == NEVER:
            self._lost_at = now
            is_routine = is_routine or end.facts.retry_hint is RetryHint.REFRESH_TOKEN  # tokens expire
            level = logging.INFO if is_routine else logging.WARNING
        fields = self._fields(endpoint, end.error)
        self._log.log(level, "stream %s: lost at %s: %s", self._name, endpoint, end.error.message, extra=fields)
        self._tell("lost", endpoint, end.error)

    def on_end(self, error: EtcdError | None, *, is_closed: bool) -> None:
        """No further stream is opened until one is needed again.

        Args:
            error: the reason; None if the stream is just not needed any more.
            is_closed: the client is closed, which is not worth a line in the log.
        """
        self._lost_at = NEVER
        if error is not None and not is_closed:
            fields = self._fields("", error)
            self._log.warning("stream %s: ended: %s: %s", self._name, type(error).__name__, error, extra=fields)
        self._tell("ended", "", error)

    def _fields(self, endpoint: str, error: EtcdError | None = None) -> dict[str, str]:
        """The fields of a line in the log."""
        code = {} if error is None or error.code is None else {"code": error.code.name}
        return {"method": self._method, "endpoint": endpoint, **code}

    def _tell(self, event: StreamEvent, endpoint: str, error: EtcdError | None = None) -> None:
        if self._on_change is not None:
            self._on_change(StreamChange(event, self._method, self._name, endpoint, error, self._client))

    def statistics(self, now: float) -> StreamStatistics:
        """Return a snapshot."""
        since = 0.0 if self.since == NEVER else now - self.since
        is_open = bool(self.endpoint)
        return StreamStatistics(
            self._method, self.endpoint, is_open, since, self._opened, self.last_error, self._client
        )
