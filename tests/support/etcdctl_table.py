"""Commands of etcdctl, in an order in which they can be played on an empty server, and what they print there."""

import asyncio
import os
import re
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Final

_SECONDS: Final = 60.0


@dataclass(frozen=True)
class Row:
    """One command.

    Attributes:
        command: the words; "LEASE1" stands for the first lease that was granted, "MEMBER" for the id of the member.
        stdin: what it reads.
        lines: it runs until it is terminated, and prints so many lines by then; 0 if it ends by itself.
        sorts: the order of its lines is left to chance.
    """

    command: str
    stdin: str = ""
    lines: int = 0
    sorts: bool = False


KEYS: Final = (
    Row("put a 1"),
    Row("put a 2 --prev-kv"),
    Row("put b", "from stdin"),
    Row("put --ignore-value a"),
    Row("put --ignore-value nothing"),
    Row("put --ignore-value a -w json"),
    Row("put dir/x 1 -w json"),
    Row("put dir/y 2 -w fields"),
    Row("put dir/z 3 -w table"),
    Row("put empty -- ''"),
    Row("get a"),
    Row("get nothing"),
    Row("get a -w json"),
    Row("get a -w fields"),
    Row("get a --print-value-only"),
    Row("get dir/ --prefix"),
    Row("get dir/ --prefix --keys-only"),
    Row("get dir/ --prefix --count-only -w fields"),
    Row("get dir/ --prefix --limit=2 -w json"),
    Row("get dir/ --prefix --limit=2 --keys-only -w json"),
    Row("get dir/ --prefix --order=DESCEND --sort-by=VALUE"),
    Row("get dir/ --prefix --order=ASCEND --sort-by=MODIFY"),
    Row("get dir/ --prefix --sort-by=CREATE -w json"),
    Row("get dir/ --prefix --sort-by=VERSION"),
    Row("get dir/ --prefix --sort-by=KEY --order=DESCEND"),
    Row("get a c"),
    Row("get b --from-key -w json"),
    Row("get '' --prefix --keys-only"),
    Row("get a --rev=2"),
    Row("get a --rev=1000"),
    Row("get a --consistency=s"),
    Row("get a --consistency=x"),
    Row("get '' --from-key --min-mod-rev=4 --max-mod-rev=7 -w json"),
    Row("get '' --from-key --min-create-rev=4 --max-create-rev=7 -w json"),
    Row("get dir/ --prefix --stream"),
    Row("get dir/ --prefix --stream --order=DESCEND"),
    Row("get ''"),
    Row("get a b c"),
    Row("del nothing"),
    Row("del a --prev-kv"),
    Row("del a b --range"),
    Row("del dir/x -w json"),
    Row("del dir/ --prefix --prev-kv -w json"),
    Row("del b --from-key -w fields"),
    Row("put a 1"),
    Row("put a 2"),
    Row("get a --stream -w json"),
    Row("get a --stream -w fields"),
    Row("get a --stream --rev=3 -w json"),
    Row("get a --rev=0x0D"),
    Row("get a --rev=015"),
    Row("get a --rev=1_3 --limit=0b1"),
    Row("get a --rev=+13"),
    Row("get a --rev=08"),
    Row("get a --limit=1.0"),
    Row("get a --limit=1__0"),
    Row("get a --limit=99999999999999999999"),
    Row("compaction 1_3"),
    Row("compaction 0xd"),
    Row("compaction 13"),
    Row("compaction 13"),
    Row("compaction 1000"),
    Row("compaction 14 --physical"),
    Row("get a --rev=5"),
)

TXNS: Final = (
    Row("put a 1"),
    Row("txn", 'value("a") = "1"\n\nput b 2\nget a\n\nget b\n\n'),
    Row("txn", 'version("a") > "7"\n\nput b 2\n\nget b\nput c 3\ndel a\n\n'),
    Row("txn -w json", 'mod("c") < "100"\ncreate("a") = "0"\n\nget "" --prefix\nput "x y" "a b"\n\n\n'),
    Row("txn -w fields", 'value("c") > "0"\n\nget c\nput c 4\ndel c --prefix\n\n\n'),
    Row("txn", "\nput a 1\nput a 2\n\n\n"),
    Row("txn", "\nput a 1\nget a --rev=500\n\n\n"),
    Row("txn", "rubbish\n\n\n\n"),
    Row("txn", 'create("a") > "1_0"\n\nget a\n\nget b\n\n'),
    Row("txn", 'create("a") > " 1"\n\nget a\n\nget b\n\n'),
    Row("txn", 'mod("a") > "0x1"\n\nget a\n\nget b\n\n'),
    Row("txn", 'version("a") > "+0"\n\nget a\n\nget b\n\n'),
    Row("txn", "\nget a --limit=0x1\n\n\n"),
    Row("txn", "\nget a -w json\n\n\n"),
    Row("txn", "\nget a --hex\n\n\n"),
    Row("txn", "\nget a\nput b 1 --endpoints=x\n\n\n"),
    Row("txn", "\n\nput a 1 --lease=0x1\n\n"),
    Row("get '' --prefix"),
)

WATCHES: Final = (
    Row("put a 1"),
    Row("put a 2"),
    Row("put ab 3"),
    Row("del a"),
    Row("watch a --rev=2", lines=9),
    Row("watch a --prefix --rev=2", lines=12),
    Row("watch a --rev=2 --prev-kv", lines=13),
    Row("watch a b --rev=3", lines=9),
    Row("watch a --rev=2 -w json", lines=1),
    Row("watch -i", "watch a --rev=3\n", lines=6),
    Row("watch -i", "watch\nwatch a b --prefix\nfoo\n\nwatch --rev=2 -- w1\nwatch a --rev=3\n", lines=6),
    Row("watch a --rev=4 -- echo changed", lines=4),
    Row("compaction 3"),
    Row("watch a --rev=2"),
    Row("watch a --rev=2 -w json"),
    Row("watch a --rev=2 -w fields"),
    Row("watch a --rev=2 -w table"),
    Row("watch -i", "watch a --rev=2\nfoo\n"),
)

LEASES: Final = (
    Row("lease list"),
    Row("lease grant 60"),
    Row("lease grant 10000000000"),
    Row("lease list"),
    Row("lease list -w json"),
    Row("put a 1 --lease=LEASE1"),
    Row("put b 1 --lease=LEASE1"),
    Row("put c 1 --lease=1234"),
    Row("put a 2"),
    Row("put b 2 --ignore-lease"),
    Row("get b -w json"),
    Row("lease timetolive LEASE1"),
    Row("lease timetolive LEASE1 --keys"),
    Row("lease timetolive LEASE1 --keys -w json"),
    Row("lease timetolive LEASE1 --keys -w fields"),
    Row("lease timetolive 1234"),
    Row("lease timetolive +1234"),
    Row("lease timetolive 0x1234"),
    Row("lease revoke 12_34"),
    Row("lease keep-alive --once 0x1234"),
    Row("lease grant 6_0"),
    Row("lease grant 0x60"),
    Row("put d 1 --lease=0x1234"),
    Row("put d 1 --lease=12_34"),
    Row("lease keep-alive --once LEASE1"),
    Row("lease keep-alive --once 1234"),
    Row("lease keep-alive LEASE1", lines=1),
    Row("lease grant 100 -w fields"),
    Row("lease list"),
    Row("lease revoke LEASE1"),
    Row("lease revoke LEASE1"),
    Row("get '' --prefix"),
)

CONCURRENCY: Final = (
    Row("lock l -- echo held"),
    Row("lock l --ttl=5 -- false"),
    Row("lock l", lines=1),
    Row("elect e value", lines=2),
    Row("get '' --prefix --keys-only"),
)

CLUSTER: Final = (
    Row("put a 1"),
    Row("member list"),
    Row("member list -w json"),
    Row("member list -w fields"),
    Row("member list -w table --hex"),
    Row("endpoint health"),
    Row("endpoint health -w json"),
    Row("endpoint health --cluster"),
    Row("endpoint status"),
    Row("endpoint status -w json"),
    Row("endpoint status -w fields"),
    Row("endpoint status --cluster"),
    Row("endpoint hashkv"),
    Row("endpoint hashkv --rev=1"),
    Row("endpoint hashkv --rev=1000"),
    Row("endpoint hashkv -w json"),
    Row("alarm list"),
    Row("alarm disarm"),
    Row("alarm disarm -w json"),
    Row("alarm disarm -w fields"),
    Row("member remove 0x1234"),
    Row("member remove 12_34"),
    Row("move-leader 0x1234"),
    Row("defrag"),
    Row("move-leader 1234"),
    Row("move-leader MEMBER"),
    Row("snapshot save FILE"),
)

AUTH: Final = (
    Row("auth status"),
    Row("auth enable"),
    Row("user add root:pw"),
    Row("user add root:pw"),
    Row("user add nobody --no-password"),
    Row("user add u:pu"),
    Row("role add root"),
    Row("role add r"),
    Row("role add r"),
    Row("role grant-permission r readwrite a"),
    Row("role grant-permission r read dir/ --prefix=true"),
    Row("role grant-permission r write m --from-key"),
    Row("role grant-permission r wrong a"),
    Row("role get r"),
    Row("role get r -w json"),
    Row("role get nothing"),
    Row("role list"),
    Row("user grant-role u r"),
    Row("user grant-role u nothing"),
    Row("user grant-role root root"),
    Row("user get u"),
    Row("user get u --detail"),
    Row("user get nothing"),
    Row("user list"),
    Row("user list -w json"),
    Row("auth enable"),
    Row("auth status --user=root:pw"),
    Row("put a 1"),
    Row("put a 1 --user=u:wrong"),
    Row("put a 1 --user=u:pu"),
    Row("put b 1 --user=u:pu"),
    Row("get a --user=u:pu"),
    Row("get dir/ --prefix --user=u:pu"),
    Row("get '' --prefix --user=u:pu"),
    Row("put z 1 --user=u:pu"),
    Row("get z --user=u:pu"),
    Row("txn --user=u:pu", "\nput a 2\nget b\n\n\n"),
    Row("user list --user=u:pu"),
    Row("user get u --user=u:pu"),
    Row("role get r --user=u:pu"),
    Row("member list --user=u:pu"),
    Row("endpoint health --user=u:pu"),
    Row("lease grant 60 --user=u:pu"),
    Row("compaction 2 --user=u:pu"),
    Row("watch a --rev=2 --user=u:pu", lines=3),
    Row("watch b --user=u:pu"),
    Row("user passwd u --interactive=false --user=root:pw", "new\n"),
    Row("get a --user=u:pu"),
    Row("get a --user=u:new"),
    Row("user revoke-role u r --user=root:pw"),
    Row("user revoke-role u r --user=root:pw"),
    Row("role revoke-permission r a --user=root:pw"),
    Row("role revoke-permission r a --user=root:pw"),
    Row("role delete r --user=root:pw"),
    Row("role delete r --user=root:pw"),
    Row("user delete u --user=root:pw"),
    Row("user delete root --user=root:pw"),
    Row("auth disable --user=root:pw"),
    Row("auth disable"),
    Row("user list"),
)

REFUSED: Final = (
    Row("member add other --peer-urls=http://127.0.0.1:1"),
    Row("member remove MEMBER"),
    Row("member update MEMBER --peer-urls=http://127.0.0.1:1"),
    Row("member promote MEMBER"),
    Row("downgrade validate 3.6"),
)
"""What the fake refuses."""

TABLES: Final = {
    "keys": KEYS,
    "transactions": TXNS,
    "watches": WATCHES,
    "leases": LEASES,
    "locks and elections": CONCURRENCY,
    "cluster": CLUSTER,
    "users": AUTH,
}

# What differs from server to server and from run to run, and is not in the tables of ids.
_VARYING: Final = (
    (r'"(cluster_id|member_id|raft_term|raftTerm|raftIndex|raftAppliedIndex|dbSize|dbSizeInUse)":\d+', r'"\1":N'),
    (r'"(hash|leader|ID|TTL|ttl|id|lease)":-?\d+', r'"\1":N'),
    (r'"(took|Took)":"[^"]*"', r'"\1":T'),
    (r'"(peerURLs|clientURLs)":\[[^]]*\]', r'"\1":[]'),
    (
        r'"(ClusterID|MemberID|RaftTerm|RaftIndex|RaftAppliedIndex|Leader|DBSize|DBSizeInUse|Hash|ID|TTL)" ?: ?-?\d+',
        r'"\1":N',
    ),
    (r'"(Name|PeerURL|ClientURL)" ?: ?"[^"]*"', r'"\1":S'),
    (r'"name":"[^"]*"', '"name":S'),
    (r"took = \S+", "took = T"),
    (r"[Tt]ook [\d.]\S*", "took T"),
    (r"remaining\(\d+s\)", "remaining(Ns)"),
    (r"\d+(\.\d+)? [kM]B", "SIZE"),
    (r"\b[0-9a-f]{12,16}\b", "HEX"),
    (r"http://[\w.]+:\d+", "URL"),
    (r"\d+%", "PERCENT"),
    (r"(true|false), (true|false), \d+, \d+, \d+,", r"\1, \2, TERM, INDEX, APPLIED,"),
    (r"(?m)^URL, \d+,", "URL, HASH,"),
    ("─+", "─"),  # tables are as wide as what they show
    (" +", " "),
)


@dataclass
class Etcdctl:
    """Plays commands on one server.

    Attributes:
        program: etcdctl.
        endpoint: the server.
        names: ids and paths, by the word that stands for them.
    """

    program: Sequence[str]
    endpoint: str
    names: dict[str, str] = field(default_factory=dict)

    async def play(self, row: Row) -> tuple[object, ...]:
        """Run a command. Returns what it says, without what differs from server to server."""
        words = [self.names.get(word, word.strip("'")) for word in row.command.split()]
        words = [re.sub(r"LEASE\d", lambda found: self.names.get(found[0], found[0]), word) for word in words]
        try:
            async with asyncio.timeout(_SECONDS):
                if row.lines:
                    return await self._first_lines(words, row)
                code, stdout, stderr = await self.run(words, row.stdin)
        except TimeoutError:
            raise AssertionError(f"{row.command}: no end, or too few lines, on {self.endpoint}") from None
        self._learn(stdout.decode("utf-8", "backslashreplace"))
        # Messages of etcdctl's own logger are not part of its answer.
        errors = [line for line in stderr.decode().splitlines() if line and not line.startswith("{")]
        lines = self._normalised(stdout.decode("utf-8", "backslashreplace")).splitlines()
        return code, sorted(lines) if row.sorts else lines, [self._normalised(line) for line in errors]

    async def run(self, words: Sequence[str], stdin: str) -> tuple[int, bytes, bytes]:
        """Run a command to its end. Returns its exit code, and what it writes to stdout and stderr."""
        async with self._started(words) as child:
            stdout, stderr = await child.communicate(stdin.encode())
            assert child.returncode is not None
            return child.returncode, stdout, stderr

    @asynccontextmanager
    async def _started(self, words: Sequence[str]) -> AsyncIterator[asyncio.subprocess.Process]:
        pipe = asyncio.subprocess.PIPE
        endpoints = f"--endpoints={self.endpoint}"
        child = await asyncio.create_subprocess_exec(
            *self.program, endpoints, *words, stdin=pipe, stdout=pipe, stderr=pipe, env=_ENVIRONMENT
        )
        try:
            yield child
        finally:
            if child.returncode is None:
                child.kill()
                await child.communicate()

    async def _first_lines(self, words: Sequence[str], row: Row) -> tuple[object, ...]:
        async with self._started(words) as child:
            assert child.stdin is not None
            assert child.stdout is not None
            child.stdin.write(row.stdin.encode())
            lines = [(await child.stdout.readline()).decode() for _ in range(row.lines)]
            child.terminate()
            rest, _ = await child.communicate()
        return tuple(self._normalised(line) for line in lines), self._normalised(rest.decode())

    def _learn(self, text: str) -> None:
        granted = re.search(r"^lease (\w+) granted with TTL", text)
        if granted:
            self.names[f"LEASE{1 + sum(name.startswith('LEASE') for name in self.names)}"] = granted[1]

    def _normalised(self, text: str) -> str:
        for name, value in self.names.items():
            text = re.sub(rf"(?<!\w){re.escape(value)}(?!\w)", name, text)
        for pattern, replacement in _VARYING:
            text = re.sub(pattern, replacement, text)
        return text


_ENVIRONMENT: Final = {name: value for name, value in os.environ.items() if not name.startswith("ETCDCTL_")}
