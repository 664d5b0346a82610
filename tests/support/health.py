"""The stream that tells a client the health of a member: it is opened a second after the connection, whatever runs."""

import asyncio
from typing import Any


def other_tasks() -> "set[asyncio.Task[Any]]":
    """All tasks but those of such streams, which a test that takes long has besides."""
    return {task for task in asyncio.all_tasks() if not task.get_name().startswith("etcd_aio serving")}
