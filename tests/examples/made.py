"""The parts of the documentation that are made from the code, so that they cannot say something else.

`python -m tests.examples.made` writes them anew into the pages, between `<!-- made: NAME -->` and `<!-- end -->`;
`test_docs.py` checks that they are what it would write.
"""

import inspect
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import fields
from math import inf
from pathlib import Path
from typing import Final

import etcd_aio
import etcd_aio.errors
from benchmarks.failover import record
from benchmarks.failover.faults import FAULTS
from etcd_aio import Client, EtcdError, RetryPolicy, methods
from etcd_aio.balancer import POLICIES, Candidate, PolicyName
from etcd_aio.balancer.health import patience
from etcd_aio.balancer.keeping import Standing
from etcd_aio.balancer.policy import Policy
from etcd_aio.error_handler.stream_verdict import STREAM_VERDICTS
from etcd_aio.error_handler.verdict import VERDICTS
from etcd_aio.errors import Remedy, ServerError
from etcd_aio.transport import TransportOptions
from tests.examples.blocks import read
from tests.examples.paths import PAGES, ROOT


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    names = list(head)
    return "\n".join(f"| {' | '.join(row)} |" for row in [names, ["---"] * len(names), *rows])


def verdicts() -> str:
    """What follows from a failed attempt."""
    rows = [(situation.value, *(verdict.value for verdict in both)) for situation, both in VERDICTS.items()]
    return table(("what became of the attempt", "a call that may run twice", "a call that must not"), rows)


def stream_verdicts() -> str:
    """What follows when a stream has ended."""
    rows = [(situation.value, verdict.value) for situation, verdict in STREAM_VERDICTS.items()]
    return table(("how the stream ended", "what follows"), rows)


def remedies() -> str:
    """Which of the server's errors belong to which situation."""
    situations = {
        Remedy.REFRESH_TOKEN: "the server refused the token",
        Remedy.RETRY_ELSEWHERE: "the server refused it before it could run, and another may take it",
        Remedy.RETRY_IF_REPEATABLE: "the server answered, but may still carry it out",
    }
    public = [getattr(etcd_aio.errors, name) for name in etcd_aio.errors.__all__]
    classes = [one for one in public if isinstance(one, type) and issubclass(one, ServerError)]
    rows = [
        (text, ", ".join(f"`{one.__name__}`" for one in classes if one.remedy is remedy))
        for remedy, text in situations.items()
    ]
    return table(("what became of the attempt", "the errors that say so"), rows)


def repeatable() -> str:
    """Which RPCs may run twice."""

    def names(is_mutation: bool, may_run_twice: bool) -> str:
        found = [one for one in methods.ALL if (one.is_mutation, one.repeatable) == (is_mutation, may_run_twice)]
        return ", ".join(one.name.split("/")[1] for one in found)

    rows = [
        ("reads that may run twice", names(False, True)),
        ("reads that are not repeated by themselves", names(False, False)),
        ("mutations that may run twice", names(True, True)),
        ("mutations that must not", names(True, False)),
    ]
    return table(("kind", "RPCs"), rows)


def defaults() -> str:
    """Every time that is waited for."""
    client = {name: one.default for name, one in inspect.signature(Client).parameters.items()}
    policy = {one.name: one.default for one in fields(RetryPolicy)}
    silence = TransportOptions()
    rows = [
        ("a call with all its attempts", f"{client['timeout']:g} s", "`Client(timeout=)`, or `timeout=` of the call"),
        ("dialling one endpoint, with TLS", f"{client['connect_timeout']:g} s", "`Client(connect_timeout=)`"),
        (
            "waiting for a member that others overtake, until reads move: twice what the slowest answers take, within",
            f"{patience(0.0, 0):g} s to {patience(inf, 0):g} s",
            "",
        ),
        ("silence on a connection where a call waits, until it is pinged", f"{silence.silence_time:g} s", ""),
        ("silence after that ping, until the connection is given up", f"{silence.silence_timeout:g} s", ""),
        (
            "silence on an open stream (watches, leases), until it is pinged",
            f"{client['keepalive_time']:g} s",
            "`Client(keepalive_time=)`",
        ),
        (
            "silence after that ping, until the connection is given up",
            f"{client['keepalive_timeout']:g} s",
            "`Client(keepalive_timeout=)`",
        ),
        ("attempts of one call", f"{policy['max_attempts']}", "`RetryPolicy(max_attempts=)`"),
        ("the first wait between attempts", f"{policy['initial_backoff']:g} s", "`RetryPolicy(initial_backoff=)`"),
        ("the longest wait between attempts", f"{policy['max_backoff']:g} s", "`RetryPolicy(max_backoff=)`"),
    ]
    return table(("what", "default", "where to change it"), rows)


_POLICIES: Final = {
    "round_robin": "all in turn, beginning by chance",
    "power_of_two": "the less busy and faster of two that are drawn by lot",
    "leader_first": "the leader, which is looked for after every election; the others in turn while there is none",
    "pinned": "the member that was connected first, as etcd's Go client did in 3.2 and 3.3",
    "random_pinned": "a member drawn by lot, as etcd's Go client did in 3.1",
}


def policies() -> str:
    """Whom each policy takes, and how many connections it keeps."""

    def connections(name: PolicyName) -> int:
        three = dict.fromkeys("abc", Standing.GOOD)
        return len(Policy[Candidate](name, lambda: 0.0).needs.keep(three, lambda: 0.0))

    kept = {1: "one", 3: "one to every endpoint"}
    rows = [(f"`{name}`", _POLICIES[name], kept[connections(name)]) for name in POLICIES]
    rows.append(("your own function", "the one that it returns", "one to every endpoint"))
    return table(("policy", "takes", "connections"), rows)


def performance() -> str:
    """Calls a second over those of the official Go client and of the bare grpc.aio stub, from the result file."""
    measured = json.loads(read(ROOT / "docs" / "performance.json"))
    found = {one["case"]: one for one in measured["results"] if one["client"] == "etcd_aio"}
    rows = []
    for case, text in measured["cases"].items():
        one = found[case]
        ratios = [f"{one['ratios'][other]['rate']:.2f}" for other in ("go", "grpc.aio-stub")]
        cpu = [f"{one['ratios'][other]['cpu']:.2f}" for other in ("go", "grpc.aio-stub")]
        rows.append((text, *ratios, *cpu))
    head = ("case", "rate ÷ Go", "rate ÷ grpc.aio", "client CPU ÷ Go", "client CPU ÷ grpc.aio")
    return table(head, rows)


def failover() -> str:
    """Recovery after each fault, of this client and the official Go client, from the result file."""
    _, runs = record.read(ROOT / "docs" / "failover.json")
    rows = []
    for fault in FAULTS:
        if not fault.gets.recovery:
            continue  # no fault, or one from which nobody has to recover
        row = [fault.title]
        for operation in ("get", "put"):
            mine = [run for run in runs if (run.fault, run.operation) == (fault.name, operation)]
            row.append(span(run.servers.all_members for run in mine if run.servers is not None))
            for client in ("etcd_aio", "go"):
                found = [run.found for run in mine if run.client == client and run.found is not None]
                errors = span((one.failed for one in found), digits=0)
                row.append(f"{span(one.recovery for one in found)} ({errors})")
        rows.append(row)
    head = ("fault", "gets: servers", "etcd_aio", "Go", "puts: servers", "etcd_aio", "Go")
    return table(head, rows)


def span(numbers: Iterable[float | None], digits: int = 2) -> str:
    """The least and the most."""
    known = sorted(number for number in numbers if number is not None)
    return "…".join(dict.fromkeys(f"{number:.{digits}f}" for number in (known[:1] + known[-1:]))) or "-"


def error_tree() -> str:
    """The classes of errors, each below the first one that it stands on."""

    def lines(parent: type[BaseException], indent: str) -> Iterator[str]:
        children = [one for one in classes if next(base for base in one.__bases__ if base in known) is parent]
        for child in children:
            others = [base.__name__ for base in child.__bases__ if base is not parent]
            also = f" ({', '.join(others)})" if others else ""
            yield f"{indent}{child.__name__}{also}"
            yield from lines(child, indent + "    ")

    public = [getattr(etcd_aio.errors, name) for name in etcd_aio.errors.__all__]
    classes = [one for one in public if isinstance(one, type) and issubclass(one, EtcdError) and one is not EtcdError]
    known = {EtcdError, *classes}
    return "\n".join(("```text", "EtcdError", *lines(EtcdError, "    "), "```"))


_SECTIONS: Final = {
    "base": "Raised on this side",
    "server": "Families of the server's answers",
    "requests": "Requests, leases, watches",
    "availability": "Members that cannot serve",
    "auth": "Authentication",
    "cluster": "Members and versions",
}


def errors() -> str:
    """Every class of error, for the reference to show, in the order and the sections of the files that define them."""
    public = [getattr(etcd_aio.errors, name) for name in etcd_aio.errors.__all__]
    classes = [one for one in public if isinstance(one, type) and issubclass(one, EtcdError)]
    parts = []
    for file, title in _SECTIONS.items():
        found = [one for one in classes if one.__module__ == f"etcd_aio.errors.{file}"]
        parts.append(f"## {title}")
        parts += [directive(one) for one in sorted(found, key=lambda one: inspect.getsourcelines(one)[1])]
    assert len(parts) == len(classes) + len(_SECTIONS), "a file of errors has no section"
    return "\n\n".join(parts)


def directive(shown: type) -> str:
    """What has mkdocstrings show a class, by its public name."""
    door = "etcd_aio" if shown.__name__ in etcd_aio.__all__ else "etcd_aio.errors"
    return f"::: {door}.{shown.__name__}\n    options:\n      heading_level: 3"


MADE: Final[Mapping[str, Callable[[], str]]] = {
    one.__name__: one
    for one in (
        *(verdicts, stream_verdicts, remedies, repeatable, defaults),
        *(policies, performance, failover, error_tree, errors),
    )
}


_PLACE: Final = re.compile(r"^<!-- made: (\w+) -->\n(.*?)^<!-- end -->$", re.MULTILINE | re.DOTALL)


def made_in(page: str) -> dict[str, str]:
    """What is made from the code in a page, by name."""
    return {found[1]: found[2] for found in _PLACE.finditer(page)}


def made(name: str) -> str:
    """What is to stand between the comments."""
    return f"\n{MADE[name]()}\n\n"


def write(path: Path) -> None:
    def anew(found: re.Match[str]) -> str:
        return f"<!-- made: {found[1]} -->\n{made(found[1])}<!-- end -->"

    path.write_text(_PLACE.sub(anew, read(path)), encoding="utf-8")


if __name__ == "__main__":
    for each in sorted(PAGES.rglob("*.md")):
        write(each)
