"""recipes/, calls/writer.py: every writer on every store: it writes where it reads, or is refused."""

import ast
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

import etcd_aio
from etcd_aio import Client, DeleteResult, InvalidRequestError, PutResult, Txn, Writer
from etcd_aio.calls import writer_for
from etcd_aio.fake import FakeEtcd
from etcd_aio.recipes import Barrier, Counter, IdAllocator, PriorityQueue, Queue, Transaction, WorkQueue

pytestmark = [pytest.mark.anyio, pytest.mark.virtual_time]

ROOT = Path(etcd_aio.__file__).parent

# Stores: by name, what makes them of a client, and what their keys begin with.
STORES: dict[str, tuple[Callable[[Any], Any], bytes]] = {
    "client": (lambda client: client, b""),
    "namespace": (lambda client: client.namespace("a/"), b"a/"),
    "the same namespace again": (lambda client: client.namespace("a/"), b"a/"),
    "another namespace": (lambda client: client.namespace("b/"), b"b/"),
    "namespace in a namespace": (lambda client: client.namespace("a/").namespace("c/"), b"a/c/"),
    "namespace of two prefixes": (lambda client: client.namespace("a/c/"), b"a/c/"),
    "ordered": (lambda client: client.ordered(), b""),
    "ordered namespace": (lambda client: client.namespace("a/").ordered(), b"a/"),
    "namespace of an ordered view": (lambda client: client.ordered().namespace("a/"), b"a/"),
}


class Forwarding:
    """A writer of an application, which does not tell whose keys it names."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer

    async def put(self, *args: Any, **options: Any) -> PutResult:
        return await self._writer.put(*args, **options)

    async def delete(self, *args: Any, **options: Any) -> DeleteResult:
        return await self._writer.delete(*args, **options)

    def txn(self) -> Txn:
        return self._writer.txn()


class Telling(Forwarding):
    """One that does."""

    @property
    def key_space(self) -> object:
        return getattr(self._writer, "key_space", None)


@asynccontextmanager
async def store_itself(store: Any) -> AsyncIterator[Writer]:
    yield store


@asynccontextmanager
async def once(store: Any) -> AsyncIterator[Writer]:
    async with store.exactly_once() as writer:
        yield writer


@asynccontextmanager
async def fenced(store: Any) -> AsyncIterator[Writer]:
    async with store.lock("lock-of-the-writer") as lock:
        yield lock.fenced


@asynccontextmanager
async def fenced_once(store: Any) -> AsyncIterator[Writer]:
    async with store.exactly_once() as writer, store.election("lock-of-the-writer").lead() as leadership:
        yield leadership.fenced_by(writer)


@asynccontextmanager
async def forwarding(store: Any) -> AsyncIterator[Writer]:
    async with once(store) as writer:
        yield Telling(writer)


WRITERS = {each.__name__: each for each in (store_itself, once, fenced, fenced_once, forwarding)}


async def use_stm(store: Any, writer: Writer) -> None:
    async def add(tx: Transaction) -> str:
        kv = await tx.get("used/k")
        tx.put("used/k", "1")
        return "" if kv is None else kv.text()

    assert (await store.stm(add, writer=writer)).value == ""
    assert (await store.stm(add, writer=writer)).value == "1"


async def use_counter(store: Any, writer: Writer) -> None:
    counter = Counter(store, "used/k", writer=writer)
    assert (await counter.add(), await counter.add(), await counter.get()) == (1, 2, 2)


async def use_ids(store: Any, writer: Writer) -> None:
    ids = IdAllocator(store, "used/k", writer=writer, block=2)
    assert [await ids.next() for _ in range(3)] == [1, 2, 3]


async def use_queue(store: Any, writer: Writer) -> None:
    queue = Queue(store, "used", writer=writer)
    await queue.put("x")
    await queue.put_all(["y"])
    assert await queue.size() == 2
    assert (await queue.get()).text() == "x"


async def use_priority_queue(store: Any, writer: Writer) -> None:
    queue = PriorityQueue(store, "used", writer=writer)
    await queue.put("x", priority=1)
    await queue.put("y", priority=2)
    assert (await queue.get()).text() == "x"


async def use_work_queue(store: Any, writer: Writer) -> None:
    queue = WorkQueue(store, "used", writer=writer)
    await queue.put("x")
    await queue.put("y")
    assert await queue.size() == 2
    async with queue.worker() as worker, await anext(worker) as job:
        assert job.text() == "x"


async def use_barrier(store: Any, writer: Writer) -> None:
    barrier = Barrier(store, "used/k", writer=writer)
    assert await barrier.hold()
    assert await store.get("used/k") is not None


async def use_kubernetes(store: Any, writer: Writer) -> None:
    kubernetes = store.kubernetes(writer=writer)
    assert (await kubernetes.optimistic_put("used/k", "1", 0)).succeeded
    assert (await kubernetes.get("used/k")).kv.text() == "1"


async def use_lock_and_leadership(store: Any, writer: Writer) -> None:
    async with store.lock("other-lock") as lock, store.election("other-election").lead() as leadership:
        await lock.fenced_by(writer).put("used/k", "1")
        assert (await store.get("used/k")).text() == "1"
        await leadership.fenced_by(writer).put("used/k", "2")
        assert (await store.get("used/k")).text() == "2"


RECIPES: dict[str, Callable[[Any, Writer], Awaitable[None]]] = {
    "store.py stm": use_stm,
    "recipes/counter/counter.py Counter": use_counter,
    "recipes/counter/ids.py IdAllocator": use_ids,
    "recipes/queue/queue.py ItemQueue": use_queue,
    "recipes/queue/priority_queue.py PriorityQueue": use_priority_queue,
    "recipes/work_queue/work_queue.py WorkQueue": use_work_queue,
    "recipes/barrier/barrier.py Barrier": use_barrier,
    "store.py kubernetes": use_kubernetes,
    "concurrency/holding.py fenced_by": use_lock_and_leadership,
}
# What those make, and hand their writer to; and what has the rule.
INTERNAL = {
    "recipes/calls.py RecipeCalls",
    "recipes/stm/stm.py StmCall",
    "recipes/kubernetes.py Kubernetes",
    "concurrency/fenced.py FencedWriter",
    "calls/writer.py is_exact",
    "calls/writer.py writer_for",
}


def takers_of_a_writer() -> Iterator[str]:
    """The functions, and classes by their `__init__`, that have an argument annotated as a `Writer`."""
    for path in sorted(ROOT.rglob("*.py")):
        if path.parts[len(ROOT.parts)] in (
            "codec",
            "fake",
            "cli",
            "sync",
        ):  # other classes of this name; the blocking ones
            continue
        tree = ast.parse(path.read_text())
        owners = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
        for node in ast.walk(tree):
            if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                continue
            arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
            if any("Writer" in ast.unparse(each.annotation).split(" | ") for each in arguments if each.annotation):
                owner = owners[node]
                is_init = node.name == "__init__" and isinstance(owner, ast.ClassDef)
                yield f"{path.relative_to(ROOT)} {owner.name if is_init else node.name}"  # type: ignore[attr-defined]


def test_every_function_that_takes_a_writer_is_here() -> None:
    assert set(takers_of_a_writer()) == {*RECIPES, *INTERNAL}


def used(fake: FakeEtcd) -> list[bytes]:
    """The keys that a use has made, but those of locks and exactly-once writes."""
    return [key for key in tuple(fake.keys()) if b"used" in key]


@pytest.mark.parametrize("writer", WRITERS)
@pytest.mark.parametrize("recipe", RECIPES)
async def test_it_writes_where_it_reads(recipe: str, writer: str) -> None:
    for store_name, (make_store, prefix) in STORES.items():
        for of_writer, (make_base, base_prefix) in STORES.items():
            if prefix != base_prefix:
                continue
            async with FakeEtcd() as fake, fake.client() as client, WRITERS[writer](make_base(client)) as through:
                await RECIPES[recipe](make_store(client), through)
                beginnings = (prefix + b"used", prefix + b"__used")  # the second one of priority queues
                assert used(fake), f"{store_name}, writer of {of_writer}"
                assert all(key.startswith(beginnings) for key in used(fake)), f"{store_name}, writer of {of_writer}"


@pytest.mark.parametrize("writer", WRITERS)
@pytest.mark.parametrize("recipe", RECIPES)
async def test_it_refuses_a_writer_of_another_namespace(recipe: str, writer: str) -> None:
    async with FakeEtcd() as fake, fake.client() as client:
        for make_base, base_prefix in STORES.values():
            async with WRITERS[writer](make_base(client)) as through:
                for store_name, (make_store, prefix) in STORES.items():
                    if prefix != base_prefix:
                        with pytest.raises(InvalidRequestError, match=r"another namespace.*exactly_once\(\)"):
                            await RECIPES[recipe](make_store(client), through)
                        assert not used(fake), store_name


@pytest.mark.parametrize("recipe", RECIPES)
async def test_a_writer_of_another_client_is_refused(recipe: str) -> None:
    async with FakeEtcd() as fake, fake.client() as client, fake.client() as other, other.exactly_once() as writer:
        with pytest.raises(InvalidRequestError, match="of another client"):
            await RECIPES[recipe](client, writer)
        assert not used(fake)


@pytest.mark.parametrize("recipe", RECIPES)
async def test_a_client_with_a_namespace_goes_with_its_own_writers(recipe: str) -> None:
    async with FakeEtcd() as fake, fake.client(namespace="t/") as client, client.exactly_once() as writer:
        await RECIPES[recipe](client, writer)
        assert all(key.startswith((b"t/used", b"t/__used")) for key in used(fake))
        with pytest.raises(InvalidRequestError, match="of another namespace"):
            await RECIPES[recipe](client.namespace("u/"), writer)


@pytest.mark.parametrize("recipe", [each for each in RECIPES if "Queue" not in each])
async def test_a_writer_that_does_not_tell_whose_keys_it_names_is_taken(recipe: str) -> None:
    async with FakeEtcd() as fake, fake.client() as client:
        tenant = client.namespace("a/")
        async with tenant.exactly_once() as writer:
            await RECIPES[recipe](tenant, Forwarding(writer))
            assert all(key.startswith(b"a/") for key in used(fake))


async def test_a_fenced_writer_has_the_keys_of_its_lock_also_if_it_forwards() -> None:
    async with FakeEtcd() as fake, fake.client() as client, client.lock("x") as lock:
        writer = lock.fenced_by(Forwarding(client))
        assert writer_for(client, writer) is writer
        with pytest.raises(InvalidRequestError, match="another namespace"):
            writer_for(client.namespace("a/"), writer)
        assert lock.is_held


@pytest.mark.parametrize("writer", [5, "client", object()])
def test_what_is_no_writer_is_refused_at_once(writer: Any) -> None:
    client = Client("http://127.0.0.1:1")
    for make in (Queue, PriorityQueue, WorkQueue, Counter, IdAllocator, Barrier):
        with pytest.raises(TypeError, match="writer must have put, delete and txn"):
            make(client, "name", writer=writer)
