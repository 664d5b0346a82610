"""The end of a command: etcdctl's exit codes, and the failure that carries one."""

from enum import IntEnum


class ExitCode(IntEnum):
    """The exit codes of etcdctl."""

    OK = 0
    ERROR = 1
    BAD_CONNECTION = 2
    INVALID_INPUT = 3
    BAD_FEATURE = 4
    INTERRUPTED = 5
    IO = 6
    BAD_ARGUMENTS = 128


class Failure(Exception):  # noqa: N818 - it may carry the exit code of a child, which is not an error here
    """The command ends with this exit code, and prints this line to stderr.

    Attributes:
        code: the exit code.
        text: the line; empty for none.
        signal: the signal that has ended the command that was run; 0 for none.
        of_terminal: a key of the terminal may have sent it, to that command alone.
    """

    def __init__(self, code: int, text: str = "", *, signal: int = 0, of_terminal: bool = False) -> None:
        super().__init__(text)
        self.code = int(code)
        self.text = text
        self.signal = signal
        self.of_terminal = of_terminal


def bad_arguments(text: str) -> Failure:
    """The failure for a wrong number of arguments, or for ones that exclude each other."""
    return Failure(ExitCode.BAD_ARGUMENTS, text)
