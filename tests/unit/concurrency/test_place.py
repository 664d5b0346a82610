"""concurrency/place.py: all interleavings of a few contenders on one store, and the rules of single steps."""

import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

import pytest

from etcd_aio.concurrency.place import LineKeys, Place, PlaceState, lock_keys, reader_keys, writer_keys


@dataclass(frozen=True)
class Listed:
    """A key as a server lists it; by default that of a contender, with the lease that its name ends with."""

    key: bytes
    create_revision: int
    lease: int = -1
    mod_revision: int = 0

    def __post_init__(self) -> None:
        if not self.mod_revision:
            object.__setattr__(self, "mod_revision", self.create_revision)
        if self.lease == -1:
            tail = self.key.rpartition(b"/")[2]
            object.__setattr__(self, "lease", int(tail, 16) if tail and not tail.strip(b"-0123456789abcdef") else 0)


@dataclass
class Contender:
    """A contender with what it has seen; `tries` is how often it still enters."""

    lease: int
    keys: LineKeys
    tries: int = 1
    place: Place = field(init=False)
    is_watching: bool = False
    has_looked: bool = False  # at the key that it waits for, since the watch began
    has_event: bool = False

    def __post_init__(self) -> None:
        self.place = Place(self.keys, self.lease)

    def copy(self) -> "Contender":
        twin = copy.copy(self)
        twin.place = copy.copy(self.place)
        return twin


class World:
    """A store and its contenders. Each step is what etcd applies at once, or what a contender does with an answer."""

    def __init__(
        self,
        contenders: list[Contender],
        expiries: int,
        limit: int = 2,
        data: tuple[bytes, ...] = (),
        overwrites: int = 0,
    ) -> None:
        self.limit = limit  # of the keys that entering lists
        self.contenders = contenders
        self.data = set(data)  # keys without a lease
        self.store = dict.fromkeys(data, 1)
        self.revision = 1
        self.overwrites = overwrites
        self.expiries = expiries

    def copy(self) -> "World":
        twin = copy.copy(self)
        twin.contenders = [contender.copy() for contender in self.contenders]
        twin.store, twin.data = dict(self.store), set(self.data)
        return twin

    def shape(self) -> tuple[object, ...]:
        """What the future depends on: of revisions only their order."""
        revisions = set(self.store.values())
        for one in self.contenders:
            revisions |= {one.place.revision, one.place.ahead.create_revision if one.place.ahead else 0}
        rank = {revision: at for at, revision in enumerate(sorted(revisions))}
        parts: list[object] = [
            self.expiries,
            self.overwrites,
            *sorted(self.data),
            *sorted((key, rank[at]) for key, at in self.store.items()),
        ]
        for one in self.contenders:
            place, ahead = one.place, one.place.ahead
            parts += [place.state.value, rank[place.revision], place.limit, place.lists_leases, one.tries]
            parts += [one.is_watching, one.has_looked, one.has_event]
            parts += [ahead.key, rank[ahead.create_revision]] if ahead else [b"", -1]
        return tuple(parts)

    def listed(self, prefix: bytes, newest: int) -> list[Listed]:
        found = [self.there(key) for key, at in self.store.items() if key.startswith(prefix) and at <= newest]
        return sorted(found, key=lambda one: -one.create_revision)

    def present(self, key: bytes) -> Listed | None:
        return self.there(key) if key in self.store else None

    def there(self, key: bytes) -> Listed:
        """As a read of one key shows it. A key becomes data when it is written again."""
        at = self.store[key]
        return Listed(key, at, 0, at + 1) if key in self.data else Listed(key, at)

    def delete(self, key: bytes) -> None:
        if self.store.pop(key, None) is not None:
            self.data.discard(key)
            self.revision += 1
            self.tell(key)

    def tell(self, key: bytes) -> None:
        for contender in self.contenders:
            ahead = contender.place.ahead
            if contender.is_watching and ahead is not None and ahead.key == key:
                contender.has_event = True

    # Steps.

    def enter(self, contender: Contender) -> None:
        contender.place = place = Place(contender.keys, contender.lease)
        contender.tries -= 1
        place.move(PlaceState.ENTERING)
        if place.key not in self.store:
            self.revision += 1
            self.store[place.key] = self.revision
        keys = sorted(key for key in self.store if key.startswith(contender.keys.before))[: self.limit]
        place.created(self.store[place.key], [Listed(key, self.store[key], 0) for key in keys], self.limit)

    def look(self, contender: Contender) -> None:
        place = contender.place
        found = self.listed(contender.keys.before, place.revision)[: place.limit]
        own = self.present(place.key)
        if not place.lists_leases:  # as etcd 3.7 lists without values
            found = [replace(kv, lease=0) for kv in found]
            own = replace(own, lease=0) if own else None
        place.looked(found, own)

    def watch(self, contender: Contender) -> None:
        contender.is_watching = True

    def check(self, contender: Contender) -> None:
        place = contender.place
        assert place.ahead is not None
        contender.has_looked = True
        place.checked(self.present(place.ahead.key))
        if place.state is not PlaceState.WAITING:
            self.unwatch(contender)

    def event(self, contender: Contender) -> None:
        ahead = contender.place.ahead
        assert ahead is not None
        contender.place.checked(self.present(ahead.key))
        assert contender.place.state is PlaceState.LOOKING
        self.unwatch(contender)

    def unwatch(self, contender: Contender) -> None:
        contender.is_watching = contender.has_looked = contender.has_event = False

    def leave(self, contender: Contender) -> None:
        place = contender.place
        self.unwatch(contender)
        if place.state is not PlaceState.LOST:
            place.move(PlaceState.LEAVING)
        if self.store.get(place.key) == place.revision:
            self.delete(place.key)
        place.move(PlaceState.OUT)

    def expire(self, contender: Contender) -> None:
        self.expiries -= 1
        self.delete(contender.place.key)

    def overwrite(self, contender: Contender) -> None:
        """Another client puts its key, without its lease; so its block is told."""
        self.overwrites -= 1
        self.data.add(contender.place.key)
        self.tell(contender.place.key)

    def steps(self) -> Iterator[tuple[str, int]]:
        """What can happen next; the ones that nothing forces are marked."""
        for at, contender in enumerate(self.contenders):
            match contender.place.state:
                case PlaceState.OUT if contender.tries:
                    yield "enter", at
                case PlaceState.LOOKING:
                    yield "look", at
                    yield "leave?", at
                case PlaceState.WAITING:
                    if not contender.is_watching:
                        yield "watch", at
                    elif not contender.has_looked:
                        yield "check", at
                    elif contender.has_event:
                        yield "event", at
                    yield "leave?", at
                case PlaceState.HELD | PlaceState.LOST:
                    yield "leave", at
                case _:
                    pass
            if self.expiries and contender.place.key in self.store:
                yield "expire?", at
            if (
                self.overwrites
                and self.owns(contender)
                and contender.place.state in (PlaceState.HELD, PlaceState.WAITING)
            ):
                yield "overwrite?", at

    def after(self, name: str, at: int) -> "World":
        world = self.copy()
        step: Callable[[Contender], None] = getattr(world, name.rstrip("?"))
        step(world.contenders[at])
        return world

    def holders(self) -> list[Contender]:
        """Those that hold, as far as etcd is concerned."""
        return [one for one in self.contenders if one.place.state is PlaceState.HELD and self.owns(one)]

    def owns(self, contender: Contender) -> bool:
        key = contender.place.key
        return self.store.get(key) == contender.place.revision and key not in self.data


def explore(first: World, check: Callable[[World], None]) -> int:
    """Visit every state that can be reached; returns their number."""
    seen = {first.shape()}
    todo = [first]
    while todo:
        world = todo.pop()
        check(world)
        steps = list(world.steps())
        if all(name.endswith("?") for name, _ in steps):
            states = [one.place.state for one in world.contenders]
            assert set(states) <= {PlaceState.OUT}, f"stuck: {states}"
            assert world.store.keys() == first.store.keys()
        for name, at in steps:
            further = world.after(name, at)
            if further.shape() not in seen:
                seen.add(further.shape())
                todo.append(further)
    return len(seen)


@pytest.mark.parametrize("limit", [2, 4])
def test_two_contenders_that_come_again_under_the_same_keys(limit: int) -> None:
    keys = lock_keys(b"a")
    contenders = [Contender(1, keys, tries=3), Contender(2, keys, tries=2)]
    assert explore(World(contenders, expiries=1, limit=limit), check_exclusion) > 500


def check_exclusion(world: World) -> None:
    holders = world.holders()
    for holder in holders:
        older = [
            one
            for one in world.contenders
            if world.owns(one) and one.place.revision < holder.place.revision and conflict(one, holder)
        ]
        assert not older, "a contender holds while an older one that it must wait for is there"
    for waiter in world.contenders:
        if waiter.keys.lists_own and waiter.place.ahead is not None and world.owns(waiter):
            others = [
                one
                for one in world.contenders
                if one.keys == waiter.keys and one.place.ahead == waiter.place.ahead and world.owns(one)
            ]
            assert others == [waiter], "a release would wake two"


def conflict(one: Contender, other: Contender) -> bool:
    return not (b"/read/" in one.place.key and b"/read/" in other.place.key)


@pytest.mark.parametrize("limit", [2, 4])
@pytest.mark.parametrize("tries", [1, pytest.param(2, marks=pytest.mark.nightly)])
def test_three_contenders_of_a_lock_with_a_lost_lease_in_every_order(limit: int, tries: int) -> None:
    keys = lock_keys(b"a")
    contenders = [Contender(0x1F, keys, tries), Contender(0x2, keys), Contender(0xA, keys)]
    assert explore(World(contenders, expiries=1, limit=limit), check_exclusion) > 500


def test_data_stands_in_no_ones_way() -> None:
    """Also if its key is named like that of a contender."""
    contenders = [Contender(1, lock_keys(b"a")), Contender(2, lock_keys(b"a"))]
    assert explore(World(contenders, 1, data=(b"a/0", b"a/42", b"a/cafe", b"a/config")), check_exclusion) > 50
    contenders = [Contender(1, reader_keys(b"a")), Contender(2, writer_keys(b"a"))]
    assert explore(World(contenders, 1, data=(b"a/read/42", b"a/write/42")), check_exclusion) > 50


def test_a_contender_whose_key_loses_its_lease_stands_in_no_ones_way() -> None:
    keys = lock_keys(b"a")
    contenders = [Contender(1, keys), Contender(2, keys), Contender(3, keys)]
    assert explore(World(contenders, expiries=0, overwrites=1), check_exclusion) > 100


def test_readers_and_writers_in_every_order() -> None:
    contenders = [
        Contender(1, reader_keys(b"a")),
        Contender(2, reader_keys(b"a")),
        Contender(3, writer_keys(b"a")),
    ]
    assert explore(World(contenders, expiries=1), check_exclusion) > 1_000


def test_two_writers_and_a_reader_in_every_order() -> None:
    contenders = [
        Contender(1, reader_keys(b"a")),
        Contender(2, writer_keys(b"a")),
        Contender(3, writer_keys(b"a")),
    ]
    assert explore(World(contenders, expiries=1), check_exclusion) > 1_000


class Unchecked(Place):
    """Sabotage: takes itself for the holder when its own key is gone (etcd-io/etcd#11456)."""

    def looked(self, found: object, own: object) -> None:
        super().looked(found, Listed(self.key, self.revision))  # type: ignore[arg-type]


class Careless(Place):
    """Sabotage: does not look at the key to wait for after the watch has begun."""

    def checked(self, present: object) -> None:
        pass


@pytest.mark.parametrize("sabotage", [Unchecked, Careless])
def test_the_model_catches_sabotage(sabotage: type[Place], monkeypatch: pytest.MonkeyPatch) -> None:
    keys = lock_keys(b"a")
    monkeypatch.setattr(f"{__name__}.Place", sabotage)
    contenders = [Contender(1, keys), Contender(2, keys), Contender(3, keys)]

    def check(world: World) -> None:
        check_exclusion(world)
        for one in world.contenders:
            assert one.place.state is not PlaceState.HELD or world.expiries == 0 or world.owns(one)

    def check_first_look(world: World) -> None:
        check(world)
        for name, at in world.steps():
            if name == "look" and not world.owns(world.contenders[at]):
                assert world.after(name, at).contenders[at].place.state is PlaceState.LOST

    with pytest.raises(AssertionError):
        explore(World(contenders, expiries=1), check_first_look)


# Single steps.


def test_the_keys_are_those_of_other_clients() -> None:
    assert lock_keys(b"jobs/42").key(0x694D9A5B) == b"jobs/42/694d9a5b"
    assert lock_keys(b"a").key(-77) == b"a/-4d", "as Go prints a negative number"
    assert reader_keys(b"a").key(0xF) == b"a/read/f"
    assert writer_keys(b"a").key(0xF) == b"a/write/f"


@pytest.mark.parametrize(
    ("keys", "key", "is_one"),
    [
        (lock_keys(b"a"), b"a/1", True),
        (lock_keys(b"a"), b"a/01", False),
        (lock_keys(b"a"), b"a/0", False),
        (lock_keys(b"a"), b"a/694d9a5b", True),
        (lock_keys(b"a"), b"a/b/1", False),
        (lock_keys(b"a/b"), b"a/b/1", True),
        (reader_keys(b"a"), b"a/write/1", True),
        (reader_keys(b"a"), b"a/write/b/1", False),
        (writer_keys(b"a"), b"a/read/1", True),
        (writer_keys(b"a"), b"a/write/1", True),
        (lock_keys(b"a"), b"a/-4d", True),
        (lock_keys(b"a"), b"a/state", False),
        (lock_keys(b"a"), b"a/", False),
        (writer_keys(b"a"), b"a/1", False),
        (writer_keys(b"a"), b"a/b/1", False),
        (writer_keys(b"a"), b"a/read/b/1", False),
    ],
)
def test_keys_of_other_names_are_left_out(keys: LineKeys, key: bytes, is_one: bool) -> None:
    assert keys.has(Listed(key, 5)) is is_one
    assert keys.may_have(key) or not is_one
    assert not keys.has(Listed(key, 5, 0)), "data"
    assert not keys.has(Listed(key, 5, 0x77)), "data of another lease"


@pytest.mark.parametrize(
    ("number", "is_one"),
    [
        (b"1700000000000000000", True),
        (b"1000000000", True),  # the clock of a machine that has just started may be at the beginning of 1970
        (b"999999999", False),
        (b"694d9a5b00112233", False),
        (b"-1700000000000000000", False),
        (b"1700000000000000000/1", False),
        (b"1", False),
        (b"", False),
    ],
)
def test_the_recipe_of_go_for_read_write_locks_ends_its_keys_with_the_time(number: bytes, is_one: bool) -> None:
    for keys, key in (
        (reader_keys(b"a"), b"a/write/"),
        (writer_keys(b"a"), b"a/read/"),
        (writer_keys(b"a"), b"a/write/"),
    ):
        assert keys.has(Listed(key + number, 5, 0x77)) is is_one
        assert not keys.has(Listed(key + number, 5, 0)), "data"
    assert not lock_keys(b"a").has(Listed(b"a/" + number, 5, 0x77))


def test_keys_of_other_names_make_it_look_further() -> None:
    place = Place(lock_keys(b"a"), 1)
    place.move(PlaceState.ENTERING)
    own = Listed(b"a/1", 9)
    place.created(9, [own, Listed(b"a/b/1", 8)], 2)
    place.looked([own, Listed(b"a/b/1", 8)], own)
    assert (place.state, place.limit) == (PlaceState.LOOKING, 4)
    place.looked([own, Listed(b"a/b/1", 8), Listed(b"a/b/2", 7), Listed(b"a/b/3", 6)], own)
    assert (place.state, place.limit) == (PlaceState.LOOKING, 8)
    place.looked([own, Listed(b"a/b/1", 8), Listed(b"a/b/2", 7), Listed(b"a/2", 2)], own)
    assert place.state is PlaceState.WAITING
    assert place.ahead == Listed(b"a/2", 2)


def test_a_key_that_was_created_anew_is_not_the_one_to_wait_for() -> None:
    place = Place(lock_keys(b"a"), 1)
    place.move(PlaceState.ENTERING)
    own = Listed(b"a/1", 9)
    place.created(9, [own, Listed(b"a/2", 5), Listed(b"a/3", 3), Listed(b"a/4", 10)])
    place.looked([own, Listed(b"a/2", 5)], own)
    place.checked(Listed(b"a/2", 5))
    assert place.state is PlaceState.WAITING
    place.checked(Listed(b"a/2", 11))
    assert (place.state, place.ahead) == (PlaceState.LOOKING, None)


def test_leases_are_listed_from_the_first_doubt_on() -> None:
    """Without values etcd 3.7 lists faster, and without the leases."""
    own, data = Listed(b"a/1", 9, 0), Listed(b"a/2", 5, 0)

    def enter() -> Place:
        place = Place(lock_keys(b"a"), 1)
        place.move(PlaceState.ENTERING)
        place.created(9, [data, own])
        assert not place.lists_leases
        return place

    place = enter()
    place.looked([own, data], own)
    assert place.state is PlaceState.WAITING, "it is named like a contender's"
    place.checked(data)
    assert (place.state, place.lists_leases) == (PlaceState.LOOKING, True)
    place.looked([Listed(b"a/1", 9), data], Listed(b"a/1", 9))
    assert (place.state, place.limit) == (PlaceState.LOOKING, 4)

    for lease, state in ((1, PlaceState.HELD), (0, PlaceState.LOST)):
        place = enter()
        place.looked([replace(own, mod_revision=11)], replace(own, mod_revision=11))
        assert (place.state, place.lists_leases) == (PlaceState.LOOKING, True), "it may have lost its lease"
        rewritten = Listed(b"a/1", 9, lease, 11)
        place.looked([rewritten], rewritten)
        assert place.state is state


def test_its_own_key_created_anew_is_not_its_own() -> None:
    place = Place(lock_keys(b"a"), 1)
    place.move(PlaceState.ENTERING)
    place.created(9, [Listed(b"a/1", 9), Listed(b"a/2", 5)], 2)
    place.looked([], Listed(b"a/1", 12))
    assert place.state is PlaceState.LOST


def test_a_state_that_cannot_follow_is_a_bug() -> None:
    with pytest.raises(ValueError, match="HELD cannot follow OUT"):
        Place(lock_keys(b"a"), 1).move(PlaceState.HELD)
