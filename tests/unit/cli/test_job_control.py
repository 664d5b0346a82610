"""cli/job_control.py: what the stop of a command means, by the signal and by who has the terminal."""

import signal

import pytest

from etcd_aio.cli.job_control import Foreground, Reaction, reaction

STOPS = (signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU, signal.SIGSTOP)
GIVE, STOP, NOTHING = Reaction.GIVE_TERMINAL, Reaction.STOP_TOO, Reaction.NOTHING


@pytest.mark.parametrize(
    ("foreground", "expected"),
    [
        (Foreground.OURS, (STOP, GIVE, GIVE, NOTHING)),
        (Foreground.COMMANDS, (STOP, STOP, STOP, STOP)),
        (Foreground.ANOTHER, (STOP, STOP, STOP, NOTHING)),
        (Foreground.NO_TERMINAL, (NOTHING, NOTHING, NOTHING, NOTHING)),
    ],
)
def test_what_a_stop_does(foreground: Foreground, expected: tuple[Reaction, ...]) -> None:
    assert tuple(reaction(number, foreground) for number in STOPS) == expected
