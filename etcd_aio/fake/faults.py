"""Scripted faults: rules that match calls, and what they do to them. Pure."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from math import inf
from typing import Final

from etcd_aio import methods
from etcd_aio.errors import ConfigError, StatusCode
from etcd_aio.fake.node import Node
from etcd_aio.fake.outcomes import NEVER, CallOutcome, PendingCall
from etcd_aio.fake.refusals import Reason, Refusal
from etcd_aio.fake.server_streams import ServerStream, SilentStream
from etcd_aio.methods import AnyMethod, Cardinality

_METHODS: Final[Mapping[str, AnyMethod]] = {
    method.name: method for method in (*methods.ALL, methods.HEALTH_CHECK, methods.HEALTH_WATCH)
}


@dataclass(slots=True, eq=False)
class Fault:
    """One rule; see `FakeEtcd.fault` for its arguments.

    Attributes:
        node: the member that it matches; None for all.
        refusal: the answer; None for the server's own.
        times: how many calls it still matches; None for all.
        hits: how many calls it has matched.
    """

    method: str
    node: Node | None = None
    refusal: Refusal | None = None
    after_apply: bool = False
    delay: float = 0.0
    hang: bool = False
    cut_after: int | None = None
    goaway: bool = False
    reset: bool = False
    times: int | None = None
    hits: int = 0

    def matches(self, node: Node, path: str) -> bool:
        """Whether it matches a call, which counts then."""
        if self.times == 0 or not path.endswith(f".{self.method}") or self.node not in (None, node):
            return False
        self.hits += 1
        if self.times is not None:
            self.times -= 1
        return True

    def outcome(self, serve: Callable[[], bytes | PendingCall]) -> CallOutcome | PendingCall:
        """The outcome of a call that it matches.

        Args:
            serve: lets the server run the call; raises `Refusal`.
        """
        reply, refusal = None, self.refusal
        if (refusal is None and not self.reset) or self.after_apply:
            try:
                own = serve()
                if isinstance(own, PendingCall):
                    return own
                reply = own
            except Refusal as own_refusal:
                refusal = own_refusal if refusal is None else refusal
        if self.reset:
            return CallOutcome(delay=self.delay, loses_connection=True)
        if refusal is not None:
            reply = None
        return CallOutcome(reply, refusal, NEVER if self.hang else self.delay, goes_away=self.goaway)

    def stream(self, stream: ServerStream) -> ServerStream:
        """The stream that it matches, made from the server's own."""
        if self.hang:
            stream.close()
            return SilentStream()
        stream.cut_after = 0 if self.reset else self.cut_after
        return stream


def check(rule: Fault) -> None:
    """Refuse a rule that could not do what it says: a test that relies on it would prove nothing.

    Raises:
        ConfigError: there is no such method, or an argument is not for it.
    """
    method = _METHODS.get(rule.method)
    if method is None:
        last = rule.method.rpartition(".")[2]
        named = [name for name in _METHODS if name.rpartition("/")[2] == last]
        close = (named + get_close_matches(last, _METHODS, n=1))[:1]
        hint = f"did you mean {close[0]!r}?" if close else "a method is a service and a name, such as 'KV/Put'"
        raise ConfigError(f"etcd has no method {rule.method!r}; {hint}")
    is_unary = method.cardinality is Cardinality.UNARY
    if is_unary and rule.cut_after is not None:
        raise ConfigError(f"cut_after= is for streams, and {rule.method} is unary")
    for name in () if is_unary else ("delay", "goaway", "after_apply"):
        if getattr(rule, name):
            raise ConfigError(f"{name}= is for unary calls, and {rule.method} is a stream")
    if rule.after_apply and not (rule.refusal or rule.reset or rule.hang or rule.delay or rule.goaway):
        raise ConfigError("after_apply= says when it goes wrong, and not how: it needs another one, such as status=")
    if not 0 <= rule.delay < inf:
        raise ConfigError(f"delay= is a number of seconds, 0 or more; got {rule.delay!r}")
    if rule.times is not None and rule.times < 1:
        raise ConfigError(f"times= is a number of calls, 1 or more; got {rule.times!r}")
    if rule.cut_after is not None and rule.cut_after < 0:
        raise ConfigError(f"cut_after= is a number of messages, 0 or more; got {rule.cut_after!r}")


def refusal_of(status: str | None, message: str | None) -> Refusal | None:
    """The answer that a test asks for.

    Args:
        status: the name of a status, or of one of etcd's reasons; None for the server's own answer.
        message: the text, instead of that of the reason.

    Raises:
        ConfigError: there is no such status.
    """
    if status is None:
        if message is not None:
            raise ConfigError("message= is the text of a status: it needs status=")
        return None
    if status in Reason.__members__:
        reason = Reason[status]
        return Refusal.other(reason.code, reason.text if message is None else message)
    if status in StatusCode.__members__ and status != "OK":
        return Refusal.other(StatusCode[status], "injected by a test" if message is None else message)
    raise ConfigError(f"{status!r} is neither a gRPC status nor one of etcd's reasons, such as NO_LEADER")


@dataclass(slots=True)
class FaultRules:
    """The rules in use."""

    rules: list[Fault] = field(default_factory=list)

    def match(self, node: Node, path: str) -> Fault | None:
        """The first rule that matches a call."""
        return next((rule for rule in self.rules if rule.matches(node, path)), None)
