"""The verbs version and options, which need no server."""

from etcd_aio.cli.connection import GLOBAL_FLAGS
from etcd_aio.cli.grammar import verb
from etcd_aio.cli.session import Session
from etcd_aio.cli.versions import version_lines


@verb("version", is_local=True)
async def version(session: Session, words: tuple[str, ...]) -> None:
    """Shows the version of etcd-aio, and of the etcdctl that it follows."""
    for line in version_lines():
        session.line(line)


@verb("options", is_local=True)
async def options(session: Session, words: tuple[str, ...]) -> None:
    """Lists the global flags, and the variables that stand for them."""
    rows = [(", ".join(flag.names), flag.variable, flag.help) for flag in GLOBAL_FLAGS]
    widths = [max(len(row[column]) for row in rows) for column in range(2)]
    for names, variable, help_ in rows:
        session.line(f"{names.ljust(widths[0])}  {variable.ljust(widths[1])}  {help_}")
