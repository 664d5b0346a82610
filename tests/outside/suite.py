"""What a suite is, for the table."""

from pathlib import Path
from typing import Protocol

from tests.outside.expected import Outcome


class Suite(Protocol):
    """The tests of another client, or of a program.

    Attributes:
        name: of the suite.
        expected: the file of `expected/` that has its outcomes with the own client.
        members: how many servers it needs, the first of them at port 2379; 0 if it starts its own.
        kill_every: seconds from one kill of the leader to the next; 0 for none.
    """

    @property
    def name(self) -> str: ...

    @property
    def expected(self) -> str: ...

    @property
    def members(self) -> int: ...

    @property
    def kill_every(self) -> float: ...

    def make(self, cache: Path, is_own: bool) -> None:
        """Get the tests and what they need, unless they are there. This needs the network.

        Args:
            cache: the folder of all suites.
            is_own: whether they run with the client that they are for.

        Raises:
            UnavailableError: that is not possible on this machine; the message is the reason.
        """
        ...

    def run(self, cache: Path, is_own: bool, log: Path, *chosen: str) -> dict[str, Outcome]:
        """Run the tests. Returns their outcomes by name; none if they could not be run.

        Args:
            cache: where it was made.
            is_own: see `make`.
            log: gets what they print.
            chosen: more arguments of the program that runs them.
        """
        ...
