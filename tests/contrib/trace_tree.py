"""Prints the trace of a read that moves from a frozen member to another: `python -m tests.contrib.trace_tree`."""

import asyncio
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from opentelemetry.sdk.trace import Event, ReadableSpan

from etcd_aio import Client
from etcd_aio.testing import EtcdCluster
from tests.contrib.collector import Collector, ServerSpan
from tests.contrib.spans import Traced
from tests.support.until import until

_PLAIN = frozenset({"rpc.method", "rpc.system.name"})  # as the name of the span says


@dataclass(slots=True)
class Node:
    """A line of the tree, and those below it.

    Attributes:
        began: nanoseconds since 1970, by which the lines below are sorted.
    """

    text: str
    began: int
    below: list["Node"] = field(default_factory=list)

    def lines(self, first: str = "", others: str = "") -> Iterator[str]:
        """The lines, with their branches."""
        yield first + self.text
        below = sorted(self.below, key=lambda node: node.began)
        for node in below:
            is_last = node is below[-1]
            yield from node.lines(others + ("└─ " if is_last else "├─ "), others + ("   " if is_last else "│  "))


def tree(spans: Iterable[ReadableSpan], server_spans: Iterable[ServerSpan], names: Mapping[str, str]) -> str:
    """The trees of client and server as text.

    Args:
        spans: those of the client, which have ended.
        server_spans: those of the servers.
        names: of the members, by their ports.
    """
    nodes: dict[int, Node] = {}
    parents: dict[int, int] = {}
    for span in spans:
        context = span.get_span_context()
        assert context is not None
        assert span.start_time is not None
        assert span.end_time is not None
        text = f"{span.name}  {_milliseconds(span.end_time - span.start_time)}"
        text += "".join(f"  {name}={value!s}" for name, value in (span.attributes or {}).items() if name not in _PLAIN)
        nodes[context.span_id] = Node(text, span.start_time, [_attempt(event, names) for event in span.events])
        parents[context.span_id] = span.parent.span_id if span.parent is not None else 0
    for one in server_spans:
        nodes[one.id] = Node(f"{one.name} (server)  {_milliseconds(one.ended - one.began)}", one.began)
        parents[one.id] = one.parent
    for id_, parent in parents.items():
        if parent in nodes:
            nodes[parent].below.append(nodes[id_])
    roots = [nodes[id_] for id_, parent in parents.items() if parent not in nodes]
    return "\n".join(line for root in roots for line in root.lines())


def _attempt(event: Event, names: Mapping[str, str]) -> Node:
    found = dict(event.attributes or {})
    member = names.get(str(found["server.port"]), "")
    seconds = found["etcd_aio.duration"]
    assert isinstance(seconds, float)
    status, delivery = found["rpc.response.status_code"], found["etcd_aio.delivery"]
    text = f"{event.name} at {member}: {status}, {delivery}  {_milliseconds(round(seconds * 1e9))}"
    return Node(text, event.timestamp - round(seconds * 1e9))


def _milliseconds(nanoseconds: int) -> str:
    return f"{nanoseconds / 1e6:.1f} ms"


async def moved_call() -> str:
    """The trace of a read whose first member does not answer."""
    traced = Traced()
    environment = {"OTEL_BSP_SCHEDULE_DELAY": "100"}
    async with Collector() as collector:
        flags = ["--enable-distributed-tracing", f"--distributed-tracing-address={collector.address}"]
        async with (
            EtcdCluster(3, version=">=3.6", flags=flags, env=environment, start_timeout=120) as cluster,
            Client(cluster.endpoints, observers=[traced.observer]) as client,
        ):
            names = {one.endpoint.rpartition(":")[2]: f"m{number}" for number, one in enumerate(cluster.members, 1)}
            await until(lambda: all(one.state.name == "READY" for one in client.statistics()))
            await client.put("config", "1")
            (frozen, *_) = await cluster.followers()
            frozen.pause()
            try:
                while True:
                    traced.spans.clear()
                    with traced.tracer.start_as_current_span("GET /config"):
                        await client.get("config")
                    if len(traced.spans[0].events) > 1:
                        break
                spans = list(traced.spans)
                trace = spans[0].get_span_context()
                assert trace is not None
                await until(lambda: any(one.trace == trace.trace_id for one in collector.spans))
                await asyncio.sleep(1)  # the server's inner spans may come with the next export
            finally:
                frozen.resume()
            found = [one for one in collector.spans if one.trace == trace.trace_id]
    return tree(spans, found, names)


if __name__ == "__main__":
    print(asyncio.run(moved_call()))
