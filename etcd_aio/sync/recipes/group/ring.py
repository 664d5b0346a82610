"""Ring, for blocking code.

Made by `python -m release.facade --write` from `etcd_aio.recipes.group.ring`: do not edit.
"""

from etcd_aio.arguments import KeyLike
from etcd_aio.recipes import GroupMember, HashRing
from etcd_aio.sync.cache.derived import Derived


class Ring(Derived[HashRing, HashRing]):
    """The keys divided among the members of a group: `with group.ring() as ring:`.

    Entering reads the members, and computes their points with a pause after each few thousand; from then on they follow
    etcd. In an outage the last ones stay, also while the user may not read the group. After the end no assignment can
    be read, and `changes()` raises `CacheError`: nothing must be divided by it any more.

    `changes()` gives the present assignment, then one after each member that joins or leaves. If the members are the
    same again by then, it differs by its epoch alone. Any number of threads may use one object.
    """

    @property
    def assignment(self) -> HashRing:
        """The present assignment. It is a plain read from memory, and does not change; it is made at the first use.

        Raises:
            CacheError: the block was left, or the client is closed.
            ClientUsageError: the block was not entered.
        """
        return self._aio.assignment

    @property
    def epoch(self) -> int:
        """The revision of etcd since which the members are these: that of the present `assignment`.

        It grows with each join and leave, also if the members are the same again behind them. Of two members the one
        with the larger epoch is not older, and those with equal epochs assign alike: so it serves as a fencing token.

        Rings that follow the same join or leave have the same epoch from then on. One that has to read the members
        anew, on entering and after a compaction in an outage, takes the revision of that read, until the next join or
        leave: so let all threads of a process share one ring.

        If a store is restored from a backup, its revisions go back, and the epochs do. What was written to this store
        with an epoch went back too. Other systems, and members that have not noticed yet, have larger ones: they are
        right again if the backup was restored with `--bump-revision` of `etcdutl snapshot restore`.

        Raises:
            CacheError: as `assignment`.
        """
        return self._aio.epoch

    @property
    def members(self) -> tuple[GroupMember, ...]:
        """The present members, sorted by name.

        Raises:
            CacheError: as `assignment`.
        """
        return self._aio.members

    def owner(self, key: KeyLike) -> GroupMember:
        """The member that a key belongs to.

        Args:
            key: any text or bytes; it need not be a key of etcd.

        Raises:
            EmptyGroupError: there is no member.
            TypeError: the key is neither str nor bytes-like.
            CacheError: as `assignment`.
        """
        return self._aio.owner(key)

    def owners(self, key: KeyLike, count: int) -> tuple[GroupMember, ...]:
        """Several members for a key: its owner, then those that would be its owner next, as for copies.

        Args:
            key: any text or bytes.
            count: how many. Fewer if there are fewer members.

        Raises:
            InvalidRequestError, TypeError: an argument is invalid.
            CacheError: as `assignment`.
        """
        return self._aio.owners(key, count)
