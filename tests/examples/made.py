"""Generates parts of the documentation from the code, so that they always match it.

`python -m tests.examples.made` writes them into the pages, between `<!-- made: NAME -->` and `<!-- end -->`.
`test_docs.py` checks that they are up to date.
"""

import inspect
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import fields
from math import inf
from pathlib import Path
from random import Random
from typing import Any, Final

import etcd_aio
import etcd_aio.errors
from benchmarks.failover import record
from benchmarks.failover.faults import FAULTS
from etcd_aio import Client, EtcdError, RetryPolicy, methods
from etcd_aio.balancer import POLICIES, Candidate, PolicyName
from etcd_aio.balancer.connection_set import EndpointState
from etcd_aio.balancer.dialler import DIAL_BACKOFF
from etcd_aio.balancer.health_verdicts import silence_limit
from etcd_aio.balancer.picker import Policy
from etcd_aio.error_handler.retry_verdicts import (
    CALL_VERDICTS,
    STREAM_VERDICTS,
    CallSituation,
    RetryVerdict,
    StreamSituation,
)
from etcd_aio.errors import RetryHint, ServerError, StatusCode
from etcd_aio.fake.cluster import FakeCluster
from etcd_aio.fake.dispatch import Dispatcher
from etcd_aio.fake.refusals import Reason, Refusal
from etcd_aio.fake.releases import RELEASES
from etcd_aio.transport import TransportOptions
from pytest_etcd_aio import fixtures
from pytest_etcd_aio.options import OPTIONS
from release.api import public_names
from release.public import PUBLIC
from tests.evidence import page, results
from tests.examples.blocks import read
from tests.examples.paths import PAGES, ROOT
from tests.support.kine_cases import CASES as KINE_CASES


def table(head: Iterable[str], rows: Iterable[Iterable[str]], numbers: int = 0) -> str:
    """A table in Markdown; its last `numbers` columns are aligned to the right."""
    names = list(head)
    rule = ["---"] * (len(names) - numbers) + ["---:"] * numbers
    return "\n".join(f"| {' | '.join(row)} |" for row in [names, rule, *rows])


_OUTCOMES: Final[Mapping[CallSituation, str]] = {
    CallSituation.NOTHING_LEFT: "no time or attempts are left, or the caller or the server forbids a retry",
    CallSituation.UNSENT: "the request was never sent completely",
    CallSituation.UNPROCESSED: "the server guarantees that it did nothing",
    CallSituation.GIVEN_UP: "the client gave up on a silent member",
    CallSituation.UNPROCESSED_AGAIN: "the server guarantees that it did nothing, for the second time in this call",
    CallSituation.TOKEN_REFUSED: "the server rejected the token",
    CallSituation.REFUSED: "the server refused before it ran the request; another member may accept it",
    CallSituation.UNCERTAIN_ANSWER: "the server returned an error, but may still apply the request",
    CallSituation.NO_ANSWER: "the request was sent, and no reply came",
    CallSituation.FINAL_ANSWER: "the server returned a final error",
}
_DECISIONS: Final[Mapping[RetryVerdict, str]] = {
    RetryVerdict.FAIL: "raise",
    RetryVerdict.AT_ONCE: "retry on the next member, at once",
    RetryVerdict.BACKOFF: "retry on the next member, after the backoff",
    RetryVerdict.REFRESH_TOKEN: "get a new token, then retry",
}
_STREAM_OUTCOMES: Final[Mapping[StreamSituation, str]] = {
    StreamSituation.UNACCEPTABLE: "the reply was rejected (too large, malformed)",
    StreamSituation.PUT_OFF: "the server rejected the renewal of one lease, which is sent later",
    StreamSituation.LEFT: "the client reopened it itself, or the server ended it with OK",
    StreamSituation.LOST: "the connection was lost: no gRPC status came",
    StreamSituation.TOKEN_REFUSED: "the server rejected the token",
    StreamSituation.REFUSED: "the server ended it, for a reason that is temporary or concerns only this member",
    StreamSituation.REFUSED_FOR_GOOD: "the server rejected the request",
}
_STREAM_DECISIONS: Final[Mapping[RetryVerdict, str]] = {
    RetryVerdict.AT_ONCE: "reopen on another member, at once",
    RetryVerdict.BACKOFF: "reopen on another member, after the backoff",
    RetryVerdict.REFRESH_TOKEN: "get a new token, then reopen",
    RetryVerdict.FAIL: "end the watches with this error; retry leases until their deadlines",
}


def verdicts() -> str:
    """The decisions after a failed attempt of a call."""
    rows = [
        (_OUTCOMES[situation], *(_DECISIONS[verdict] for verdict in both)) for situation, both in CALL_VERDICTS.items()
    ]
    return table(("outcome of the attempt", "reads, and writes that are safe to repeat", "other writes"), rows)


def stream_verdicts() -> str:
    """The decisions after the end of a stream."""
    rows = [(_STREAM_OUTCOMES[situation], _STREAM_DECISIONS[verdict]) for situation, verdict in STREAM_VERDICTS.items()]
    return table(("how the stream ended", "what the client does"), rows)


def remedies() -> str:
    """The errors of the server, by the situation that they belong to."""
    situations = {
        RetryHint.REFRESH_TOKEN: _OUTCOMES[CallSituation.TOKEN_REFUSED],
        RetryHint.RETRY_ELSEWHERE: _OUTCOMES[CallSituation.REFUSED],
        RetryHint.RETRY_IF_REPEATABLE: _OUTCOMES[CallSituation.UNCERTAIN_ANSWER],
    }
    classes = [error for error in error_classes() if issubclass(error, ServerError)]
    rows = [
        (text, ", ".join(f"`{error.__name__}`" for error in classes if error.retry_hint is retry_hint))
        for retry_hint, text in situations.items()
    ]
    return table(("outcome of the attempt", "errors"), rows)


def repeatable() -> str:
    """The RPCs, by whether they are safe to repeat."""

    def names(is_mutation: bool, may_run_twice: bool) -> str:
        rpcs = [rpc for rpc in methods.ALL if (rpc.is_mutation, rpc.repeatable) == (is_mutation, may_run_twice)]
        return ", ".join(rpc.name.split("/")[1] for rpc in rpcs)

    rows = [
        ("reads that are safe to repeat", names(False, True)),
        ("reads that are not retried", names(False, False)),
        ("writes that are safe to repeat", names(True, True)),
        ("writes that are not", names(True, False)),
    ]
    return table(("kind", "RPCs"), rows)


def defaults() -> str:
    """The timeouts and limits of a call."""
    client = {name: parameter.default for name, parameter in inspect.signature(Client).parameters.items()}
    policy = {field.name: field.default for field in fields(RetryPolicy)}
    silence = TransportOptions()
    shortest, longest = silence_limit(0.0, 0, 0.0), silence_limit(inf, 0, 0.0)
    rows = [
        (
            "one call, with all its attempts",
            f"{client['timeout']:g} s",
            "`Client(timeout=)`, or `timeout=` of the call",
        ),
        ("connecting to one endpoint, including TLS", f"{client['connect_timeout']:g} s", "`Client(connect_timeout=)`"),
        (
            "how long a read waits for a silent member before it is retried elsewhere",
            f"twice the slowest recent reply, at least {shortest:g} s, at most {longest:g} s",
            "",
        ),
        ("silence on a connection with calls in flight, before a ping", f"{silence.silence_time:g} s", ""),
        ("silence after that ping, before the connection is closed", f"{silence.silence_timeout:g} s", ""),
        (
            "silence on an open stream (watches, leases), before a ping",
            f"{client['keepalive_time']:g} s",
            "`Client(keepalive_time=)`",
        ),
        (
            "silence after that ping, before the connection is closed",
            f"{client['keepalive_timeout']:g} s",
            "`Client(keepalive_timeout=)`",
        ),
        (
            "pause between two dials of an endpoint that refuses them",
            f"{DIAL_BACKOFF.initial:g} s, growing to {DIAL_BACKOFF.maximum:g} s",
            "",
        ),
        ("attempts of one call", f"{policy['max_attempts']}", "`RetryPolicy(max_attempts=)`"),
        ("first backoff between attempts", f"{policy['initial_backoff']:g} s", "`RetryPolicy(initial_backoff=)`"),
        ("longest backoff between attempts", f"{policy['max_backoff']:g} s", "`RetryPolicy(max_backoff=)`"),
    ]
    return table(("what", "default", "option"), rows)


_POLICIES: Final = {
    "round_robin": "every member in turn, starting with a random one",
    "power_of_two": "two members at random, and the less busy and faster of them",
    "leader_first": "the leader, found again after every election; round robin while there is none",
    "pinned": "the member that connected first, as etcd's Go client did in 3.2 and 3.3",
    "random_pinned": "one random member, as etcd's Go client did in 3.1",
}


def policies() -> str:
    """The policies: the member that each picks, and the number of connections that it keeps."""

    def connections(name: PolicyName) -> int:
        three = dict.fromkeys("abc", EndpointState.HEALTHY)
        return len(Policy[Candidate](name, lambda: 0.0).needs.keep(three, lambda: 0.0))

    kept = {1: "one", 3: "one per endpoint"}
    rows = [(f"`{name}`", _POLICIES[name], kept[connections(name)]) for name in POLICIES]
    rows.append(("your own function", "the member that it returns", "one per endpoint"))
    return table(("policy", "picks", "connections"), rows)


def performance() -> str:
    """Ratios to the official Go client and to a bare grpc.aio stub, from the result file."""
    measured = json.loads(read(ROOT / "docs" / "performance.json"))
    results = {result["case"]: result for result in measured["results"] if result["client"] == "etcd_aio"}
    rows = []
    for case, text in measured["cases"].items():
        ratios_to = results[case]["ratios"]
        ratios = [f"{ratios_to[other]['rate']:.2f}" for other in ("go", "grpc.aio-stub")]
        cpu = [f"{ratios_to[other]['cpu']:.2f}" for other in ("go", "grpc.aio-stub")]
        rows.append((text, *ratios, f"{results[case]['client_cpu_us_per_call']:.3g} µs", *cpu))
    head = ("case", "rate ÷ Go", "rate ÷ grpc.aio", "CPU", "CPU ÷ Go", "CPU ÷ grpc.aio")
    return table(head, rows, numbers=5)


def accelerator() -> str:
    """Ratios to the official Go client with the accelerator and without it, from the result file."""
    measured = json.loads(read(ROOT / "docs" / "performance.json"))
    head = ("case", "rate ÷ Go with it", "without", "CPU ÷ Go with it", "without")
    return table(head, _two_beside_go(measured, "etcd_aio", "etcd_aio-pure"), numbers=4)


def apart() -> str:
    """Ratios to the official Go client where the server has a core of its own, from the result file."""
    measured = json.loads(read(ROOT / "docs" / "apart.json"))
    head = ("case", "rate ÷ Go", "the same, uvloop", "CPU ÷ Go", "the same, uvloop")
    return table(head, _two_beside_go(measured, "etcd_aio", "etcd_aio-uvloop"), numbers=4)


def blocking() -> str:
    """The blocking client beside the asyncio one, from the result file."""
    measured = json.loads(read(ROOT / "docs" / "blocking.json"))
    rates = {(found["client"], found["case"]): found["calls_per_second"] for found in measured["results"]}
    rows = []
    for case, text in measured["cases"].items():
        blocks, waits = rates["etcd_aio.sync", case], rates["etcd_aio", case]
        more = f"{(1 / blocks - 1 / waits) * 1e6:.0f} µs" if case.endswith("-1") else ""
        rows.append((text, f"{blocks / waits:.2f}", more))
    return table(("case", "rate ÷ asyncio", "more for a call"), rows, numbers=2)


def _two_beside_go(measured: Mapping[str, Any], *clients: str) -> list[tuple[str, ...]]:
    """The ratios of two clients to the official Go client: the rates, and then the CPU times."""
    found = [result for result in measured["results"] if "ratios" in result]
    results = {(result["client"], result["case"]): result["ratios"]["go"] for result in found}
    rows = []
    for case, text in measured["cases"].items():
        both = [results[client, case] for client in clients]
        rows.append((text, *(f"{ratio[name]:.2f}" for name in ("rate", "cpu") for ratio in both)))
    return rows


def locks() -> str:
    """Ratios of locks to the official Go client, from the result file."""
    return _beside_go("locks")


def elections() -> str:
    """Ratios of elections to the official Go client, from the result file."""
    return _beside_go("elections")


def _beside_go(suite: str) -> str:
    measured = json.loads(read(ROOT / "docs" / f"{suite}.json"))
    results = {result["case"]: result for result in measured["results"] if result["client"] == "etcd_aio"}
    rows = []
    for case, text in measured["cases"].items():
        ratios = results[case]["ratios"]["go"]
        rows.append((text, f"{ratios['rate']:.2f}", f"{ratios['cpu']:.2f}"))
    return table(("case", "rate ÷ Go", "CPU ÷ Go"), rows, numbers=2)


def cache() -> str:
    """Figures of reads from memory, and of a Go program that keeps a prefix by hand, from the result file."""
    measured = json.loads(read(ROOT / "docs" / "cache.json"))
    rows = []
    for figure in measured["figures"]:
        unit = f" {figure['unit']}".rstrip()
        shown = [f"{found:.0f}{unit}" if abs(found) >= 100 else f"{found:.2f}{unit}" for found in _values(figure)]
        rows.append((figure["text"], *shown, *[""] * (2 - len(shown))))
    return table(("what", "etcd_aio", "Go, by hand"), rows, numbers=2)


def big_reads() -> str:
    """Large reads beside a watch, of this client and the official Go client, from the result file."""
    measured = json.loads(read(ROOT / "docs" / "big_reads.json"))
    rows = []
    for result in measured["results"]:
        for client in ("etcd_aio", "go"):
            found = result[client]
            times = (f"{found[name] * 1000:.0f} ms" for name in ("p50", "p99", "longest"))
            counts = str(found["lost"]), str(found["reads"])
            rows.append((result["server"], client, *times, *counts, f"{found['cpu'] * 1000:.1f} ms"))
    heads = ("etcd", "client", "p50", "p99", "longest", "events lost", "reads of 10 MB", "CPU of the client for each")
    return table(heads, rows, numbers=6)


def kine() -> str:
    """What works on kine."""
    rows = ((case.what, case.verdict, case.note) for case in KINE_CASES)
    return table(("call", "on kine", ""), rows)


def _values(figure: Mapping[str, float | None]) -> list[float]:
    return [found for found in (figure["etcd_aio"], figure["go"]) if found is not None]


def failover_reads() -> str:
    """Recovery of gets after each fault: this client and the official Go client, from the result file."""
    return _failover("get")


def failover_writes() -> str:
    """Recovery of puts after each fault."""
    return _failover("put")


def _failover(operation: str) -> str:
    _, runs = record.read(ROOT / "docs" / "failover.json")
    rows = []
    for fault in FAULTS:
        if not fault.gets.recovery:
            continue  # no fault, or a fault without an outage
        mine = [run for run in runs if (run.fault, run.operation) == (fault.name, operation)]
        row = [fault.title, span(run.servers.all_members for run in mine if run.servers is not None)]
        for client in ("etcd_aio", "go"):
            summaries = [run.found for run in mine if run.client == client and run.found is not None]
            row.append(span(summary.recovery for summary in summaries))
            row.append(span((summary.failed for summary in summaries), digits=0))
        rows.append(row)
    return table(("fault", "servers", "etcd_aio", "failed", "Go", "failed"), rows, numbers=5)


def evidence_claims() -> str:
    """What histories were judged for, from the result file."""
    return _evidence(page.claims)


def evidence_releases() -> str:
    """The histories that were judged, by release."""
    return _evidence(page.releases)


def evidence_clients() -> str:
    """The histories that were judged, by client."""
    return _evidence(page.clients)


def evidence_faults() -> str:
    """What happened to members and connections."""
    return _evidence(page.faults)


def evidence_sabotages() -> str:
    """What found each broken client."""
    return _evidence(page.sabotages)


def _evidence(made_of: Callable[[page.Results], page.Table]) -> str:
    head, rows, numbers = made_of(results.read())
    return table(head, rows, numbers)


def span(numbers: Iterable[float | None], digits: int = 2) -> str:
    """The smallest and the largest number."""
    known = sorted(number for number in numbers if number is not None)
    return "…".join(dict.fromkeys(f"{number:.{digits}f}" for number in (known[:1] + known[-1:]))) or "-"


def error_classes() -> list[type[EtcdError]]:
    """The public error classes."""
    public = [getattr(etcd_aio.errors, name) for name in vars(etcd_aio.errors)["__all__"]]
    return [error for error in public if isinstance(error, type) and issubclass(error, EtcdError)]


def error_tree() -> str:
    """The classes of errors, each below its first base class."""

    def lines(parent: type[BaseException], indent: str) -> Iterator[str]:
        children = [error for error in classes if next(base for base in error.__bases__ if base in known) is parent]
        for child in children:
            others = [base.__name__ for base in child.__bases__ if base is not parent]
            also = f" ({', '.join(others)})" if others else ""
            yield f"{indent}{child.__name__}{also}"
            yield from lines(child, indent + "    ")

    classes = [error for error in error_classes() if error is not EtcdError]
    known = {EtcdError, *classes}
    return "\n".join(("```text", "EtcdError", *lines(EtcdError, "    "), "```"))


_SECTIONS: Final = {
    "base": "Raised by the client",
    "concurrency": "Locks and elections",
    "once": "Exactly-once writes",
    "recipes": "Recipes: transactions as functions, counters, barriers",
    "queues": "Queues and work queues",
    "mirror": "Mirrors",
    "offline": "Files that are read without a server",
    "cache": "Reads from memory",
    "naming": "Service registration and discovery",
    "families": "Families of server errors",
    "requests": "Server errors: requests, leases, watches",
    "availability": "Server errors: availability",
    "auth": "Server errors: authentication",
    "cluster": "Server errors: membership and versions",
}


def errors() -> str:
    """The mkdocstrings directives of all error classes, in the order and the sections of the files that define them."""
    classes = error_classes()
    parts = []
    for file, title in _SECTIONS.items():
        section = [error for error in classes if error.__module__ == f"etcd_aio.errors.{file}"]
        parts.append(f"## {title}")
        parts += [directive(error) for error in sorted(section, key=lambda error: inspect.getsourcelines(error)[1])]
    assert len(parts) == len(classes) + len(_SECTIONS), "a file with errors has no section"
    return "\n\n".join(parts)


def directive(shown: type) -> str:
    """The mkdocstrings directive for a class, under its public name."""
    package = "etcd_aio" if shown.__name__ in vars(etcd_aio)["__all__"] else "etcd_aio.errors"
    return f"::: {package}.{shown.__name__}\n    options:\n      heading_level: 3"


_OPTIONS: Final[Mapping[str, tuple[str, ...]]] = {
    "Connect": ("endpoints", "tls", "discovery_srv", "discovery_srv_name", "auto_sync", "reject_old_cluster", "proxy"),
    "Credentials": ("auth", "token", "allow_insecure_auth"),
    "Timeouts": ("timeout", "connect_timeout", "fail_fast", "keepalive_time", "keepalive_timeout"),
    "Retries": ("retry", "retry_policy", "hedge_after"),
    "Load balancing": ("policy", "require_leader"),
    "Keys": ("namespace",),
    "Observers": ("name", "observers"),
    "Limits and engine": ("max_send_bytes", "max_receive_bytes", "engine"),
}


def client_options() -> str:
    """The options of Client in groups, with their defaults and their texts in its docstring."""
    parameters = inspect.signature(Client).parameters
    texts = dict(re.findall(r"^ {8}(\w+): (.*(?:\n {12}.*)*)", _arguments(Client), re.MULTILINE))
    assert texts.keys() == parameters.keys(), "the docstring and the signature name different options"
    parts = []
    for group, names in grouped(_OPTIONS, list(parameters)):
        parts.append(f"### {group}")
        for name in names:
            default = parameters[name].default
            shown = f"{default // 2**20} * 2**20" if name.endswith("_bytes") else repr(default)
            text = " ".join(texts[name].split())
            parts.append(f"`{name}={shown}`\n:   {text[:1].upper()}{text[1:]}")
    return "\n\n".join(parts)


def _arguments(documented: type) -> str:
    """The section Args of a docstring."""
    text = documented.__doc__ or ""
    return text[text.index("    Args:\n") : text.index("    Raises:\n")]


_CALLS: Final[Mapping[str, tuple[str, ...]]] = {
    "Create, connect, close": ("from_url", "from_env", "connect", "wait_ready", "ping", "aclose"),
    "Read": ("get", "range", "scan"),
    "Write": ("put", "update", "delete", "txn", "stm", "exactly_once", "compact"),
    "Any operation": ("do",),
    "Part of the keys": ("namespace",),
    "Watch": ("watch", "wait_deleted"),
    "Lease": ("lease", "leases"),
    "FakeCluster": ("cluster", "maintenance", "auth", "versions"),
    "Endpoints": ("endpoints", "set_endpoints", "sync"),
    "Statistics": ("statistics", "streams"),
}


def client_calls() -> str:
    """Every public method and property of Client, in groups."""
    public = [name for name in dir(Client) if not name.startswith("_")]
    parts = []
    for group, names in grouped(_CALLS, public):
        parts.append(f"## {group}")
        parts += [f"::: etcd_aio.Client.{name}\n    options:\n      heading_level: 3" for name in names]
    return "\n\n".join(parts)


def grouped(groups: Mapping[str, tuple[str, ...]], names: list[str]) -> Iterator[tuple[str, list[str]]]:
    """The existing names of each group; names without a group come last, under "More"."""
    for group, members in groups.items():
        yield group, [name for name in members if name in names]
    known = {name for members in groups.values() for name in members}
    if rest := [name for name in names if name not in known]:
        yield "More", rest


def fake_refused() -> str:
    """The calls that a fake etcd answers with UNIMPLEMENTED, by asking it."""
    refused: dict[str, set[str]] = {}
    for release in RELEASES.values():
        dispatcher = Dispatcher(FakeCluster(release, 1, Random(0).getrandbits))
        for method in methods.ALL:
            if method.cardinality is not methods.UNARY:
                continue
            try:
                dispatcher.unary(dispatcher.cluster.nodes[0], method.path, b"", (), 0.0)
            except Refusal as refusal:
                if refusal.code is StatusCode.UNIMPLEMENTED and refusal.text.startswith("fake etcd"):
                    refused.setdefault(method.name, set()).add(release.name)
    everywhere = set(RELEASES)
    rows = (
        (f"`{name}`", "" if names == everywhere else f"{', '.join(sorted(names))}; older ones do not have it")
        for name, names in refused.items()
    )
    return table(("refused", "releases"), ((name, names or "all") for name, names in rows))


def public_modules() -> str:
    """The public modules."""
    return table(("module", "has"), ((f"`{module}`", text) for module, text in PUBLIC.items()))


def sync_classes() -> str:
    """The mkdocstrings directives of all blocking classes, by module."""
    parts: list[str] = []
    shown: set[str] = set()
    found = public_names()
    for module in (name for name in PUBLIC if name.startswith("etcd_aio.sync")):
        names = [name for name in found if name.rpartition(".")[0] == module and found[name] not in shown]
        shown.update(found[name] for name in names)
        if names:
            parts.append(f"## {module}")
        options = "    options:\n      heading_level: 3\n      inherited_members: true"
        parts += [f"::: {name}\n{options}" for name in names]
    return "\n\n".join(parts)


def fake_releases() -> str:
    """What a fake etcd can be."""
    rows = ((f'`"{name}"`', release.version) for name, release in RELEASES.items())
    return table(("`version=`", "is"), rows)


def fake_reasons() -> str:
    """The names that `FakeEtcd.fault(status=)` takes besides those of gRPC."""
    rows = ((f"`{reason.name}`", reason.code.name, f"`{reason.text}`") for reason in Reason)
    return table(("reason", "gRPC status", "text"), rows)


def pytest_fixtures() -> str:
    """The fixtures of the pytest plugin, with their docstrings."""
    rows = []
    for name in (name for name in vars(fixtures) if name.startswith(("etcd_", "fake_"))):
        definition = getattr(fixtures, name)
        scope = definition._fixture_function_marker.scope
        text = re.sub(r"\s+", " ", inspect.getdoc(definition._get_wrapped_function()) or "")
        rows.append((f"`{name}`", str(scope), text))
    return table(("fixture", "scope", ""), rows)


def pytest_options() -> str:
    """The options of the pytest plugin, with their other forms."""
    rows = (
        (f"`--etcd-{name}{'' if metavar is None else f'={metavar}'}`", f"`etcd_{name}`", f"`{variable}`", text)
        for name, metavar, text, variable in OPTIONS
    )
    return table(("option", "ini", "environment", ""), rows)


MADE: Final[Mapping[str, Callable[[], str]]] = {
    function.__name__: function
    for function in (
        *(verdicts, stream_verdicts, remedies, repeatable, defaults),
        *(policies, performance, accelerator, apart, blocking, locks, elections, cache, big_reads, kine),
        *(failover_reads, failover_writes, error_tree, errors),
        *(evidence_claims, evidence_releases, evidence_clients, evidence_faults, evidence_sabotages),
        *(client_options, client_calls),
        *(public_modules, sync_classes, fake_refused, fake_releases, fake_reasons, pytest_fixtures, pytest_options),
    )
}


_PLACE: Final = re.compile(r"^<!-- made: (\w+) -->\n(.*?)^<!-- end -->$", re.MULTILINE | re.DOTALL)


def made_in(page: str) -> dict[str, str]:
    """The generated parts of a page, by name."""
    return {place[1]: place[2] for place in _PLACE.finditer(page)}


def made(name: str) -> str:
    """The text between the comments."""
    return f"\n{MADE[name]()}\n\n"


def write(path: Path) -> None:
    def generated(place: re.Match[str]) -> str:
        return f"<!-- made: {place[1]} -->\n{made(place[1])}<!-- end -->"

    path.write_text(_PLACE.sub(generated, read(path)), encoding="utf-8")


if __name__ == "__main__":
    for each in sorted(PAGES.rglob("*.md")):
        write(each)
