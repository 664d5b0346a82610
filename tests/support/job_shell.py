"""A shell with job control, as small as can be: it runs one job in the foreground of its terminal.

    python job_shell.py STDIN ORDERS REPORTS command...

It is the leader of the session. It writes "stopped NUMBER" and "ended CODE" to the descriptor REPORTS, and reads "fg"
or "bg" from ORDERS when the job was stopped. At its end it writes "foreground GROUP": without it the terminal has none.
STDIN is that of the job: "tty", or a path.
"""

import os
import signal
import sys


def main(stdin: str, orders: int, reports: int, command: list[str]) -> None:
    """Run the job until it ends."""
    for one in (signal.SIGTTOU, signal.SIGTTIN, signal.SIGTSTP, signal.SIGINT):
        signal.signal(one, signal.SIG_IGN)

    def hang_up(_number: int, _frame: object) -> None:
        os.killpg(job, signal.SIGHUP)
        os.killpg(job, signal.SIGCONT)

    signal.signal(signal.SIGHUP, hang_up)
    job = os.fork()
    if not job:
        os.setpgid(0, 0)
        os.tcsetpgrp(0, os.getpid())
        for one in (signal.SIGTTOU, signal.SIGTTIN, signal.SIGTSTP, signal.SIGINT, signal.SIGHUP):
            signal.signal(one, signal.SIG_DFL)
        if stdin != "tty":
            os.dup2(os.open(stdin, os.O_RDONLY), 0)
        os.execvp(command[0], command)
    while True:
        _, status = os.waitpid(job, os.WUNTRACED)
        if os.WIFSTOPPED(status):
            os.tcsetpgrp(1, os.getpgrp())
            os.write(reports, b"stopped %d\n" % os.WSTOPSIG(status))
            order = os.read(orders, 16)
            if order == b"fg":
                os.tcsetpgrp(1, job)
            os.killpg(job, signal.SIGCONT)
        else:
            code = os.waitstatus_to_exitcode(status)
            os.write(reports, b"ended %d\nforeground %d\n" % (code, os.tcgetpgrp(1)))
            return


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4:])
