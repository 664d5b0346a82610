"""A connection to a member, as the calls and streams on it see it: within the process or over a socket."""

from typing import Protocol

from etcd_aio.fake.link import Link
from etcd_aio.fake.server import FakeServer


class Carrier(Protocol):
    """The connection of calls and streams.

    Attributes:
        link: the way to the member.
        server: answers.
    """

    link: Link
    server: FakeServer

    def lose(self, error: BaseException | None) -> None:
        """End at once."""

    def go_away(self, reason: str) -> None:
        """Announce that no new calls are taken."""
