"""A command that tells by a file what happens to it: `python witness.py FILE [tty] [end] [ignore] [child]`.

Each line is a word: "ready PID", the names of signals, "tick" as long as it runs, and what it reads from the terminal.
"""

import os
import signal
import sys
import time

# ruff: noqa: PTH123 - it starts fast

file = os.open(sys.argv[1], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
words = sys.argv[2:]


def told(text: str) -> None:
    os.write(file, f"{text}\n".encode())


def on(number: int, _frame: object) -> None:
    told(signal.Signals(number).name)
    if "end" in words and number != signal.SIGCONT:
        sys.exit(7)


_TELLING = (signal.SIGUSR1, signal.SIGUSR2, signal.SIGALRM)
for one in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGCONT, *_TELLING):
    signal.signal(one, on)
if "ignore" in words:
    signal.signal(signal.SIGTSTP, signal.SIG_IGN)
if "dies" in words:
    signal.signal(signal.SIGINT, signal.SIG_DFL)
if "child" in words and os.fork() == 0:  # of the same group, and it ignores what stops its parent
    signal.signal(signal.SIGTSTP, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    told(f"child {os.getpid()}")
else:
    told(f"ready {os.getpid()}")
if "tty" in words:
    with open("/dev/tty") as terminal:
        told("read " + terminal.readline().strip())
while True:
    told("tick")
    time.sleep(0.05)
