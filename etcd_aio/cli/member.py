"""The verbs of members."""

from collections.abc import Sequence

from etcd_aio.cli.arguments import member_of, only_word
from etcd_aio.cli.go_text import quoted
from etcd_aio.cli.grammar import Switch, VerbGroup, value
from etcd_aio.cli.kv import is_serializable
from etcd_aio.cli.outcome import bad_arguments
from etcd_aio.cli.results import MembersChanged
from etcd_aio.cli.session import Session

_NO_ID = "member ID is not provided"

GROUP = VerbGroup("member", "Lists, adds, changes and removes members")


@GROUP.verb(
    "add",
    "<memberName>",
    value("--peer-urls", default="", help="the URLs of the new member for the others, separated by commas"),
    Switch("--learner", help="without a vote"),
    short="Adds a member",
)
async def add(session: Session, words: Sequence[str], *, peer_urls: str, learner: bool) -> None:
    """Adds a member, and prints the variables to start it with."""
    if not words:
        raise bad_arguments("member name not provided")
    if len(words) > 1:
        urls = "".join(f", did you mean --peer-urls={word}" for word in words if word.lower().startswith("http"))
        raise bad_arguments(f"too many arguments{urls}")
    if not peer_urls:
        raise bad_arguments("member peer urls not provided")
    (name,) = words
    async with session.client() as client:
        result = await (client.cluster.add_learner if learner else client.cluster.add)(peer_urls.split(","))
    new, cluster = result.member, result.header.cluster_id
    cluster_urls = ",".join(
        f"{name if member.id == new.id else member.name}={url}" for member in result.members for url in member.peer_urls
    )
    text = "\n".join(
        (
            f"Member {new.id:16x} added {'as learner ' if new.is_learner else ''}to cluster {cluster:16x}",
            "",
            f"ETCD_NAME={quoted(name)}",
            f"ETCD_INITIAL_CLUSTER={quoted(cluster_urls)}",
            f"ETCD_INITIAL_ADVERTISE_PEER_URLS={quoted(peer_urls)}",
            'ETCD_INITIAL_CLUSTER_STATE="existing"',
        )
    )
    session.show(MembersChanged(text, result.header, result.members, new))


@GROUP.verb("remove", "<memberID>")
async def remove(session: Session, words: tuple[str, ...]) -> None:
    """Removes a member."""
    member = member_of(only_word(words, _NO_ID))
    result = await session.call(lambda client: client.cluster.remove(member))
    text = f"Member {member:16x} removed from cluster {result.header.cluster_id:16x}"
    session.show(MembersChanged(text, result.header, result.members))


@GROUP.verb("update", "<memberID>", value("--peer-urls", default="", help="its new URLs for the other members"))
async def update(session: Session, words: tuple[str, ...], *, peer_urls: str) -> None:
    """Changes the peer URLs of a member."""
    member = member_of(only_word(words, _NO_ID))
    if not peer_urls:
        raise bad_arguments("member peer urls not provided")
    result = await session.call(lambda client: client.cluster.update(member, peer_urls.split(",")))
    text = f"Member {member:16x} updated in cluster {result.header.cluster_id:16x}"
    session.show(MembersChanged(text, result.header, result.members))


@GROUP.verb("list", "", value("--consistency", default="l", help="linearizable (l) or serializable (s)"))
async def list_(session: Session, words: tuple[str, ...], *, consistency: str) -> None:
    """Lists the members: id, status, name, peer URLs, client URLs, whether it is a learner."""
    serializable = is_serializable(consistency)
    session.show(await session.call(lambda client: client.cluster.members(serializable=serializable)))


@GROUP.verb("promote", "<memberID>")
async def promote(session: Session, words: tuple[str, ...]) -> None:
    """Promotes a learner to a voting member."""
    member = member_of(only_word(words, _NO_ID))
    result = await session.call(lambda client: client.cluster.promote(member))
    text = f"Member {member:16x} promoted in cluster {result.header.cluster_id:16x}"
    session.show(MembersChanged(text, result.header, result.members))
