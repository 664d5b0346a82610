"""config/guard.py: the options of the client that renews guarded leases in another thread."""

import asyncio
import threading
from typing import Any

import pytest

from etcd_aio.config import ClientOptions, guard_options
from etcd_aio.errors import ClientUsageError


def test_they_are_those_of_the_client_but_for_what_belongs_to_its_loop() -> None:
    options: ClientOptions = {"timeout": 3.0, "namespace": "app/", "observers": (), "reject_old_cluster": True}
    assert guard_options({**options, "name": "orders"}) == {"timeout": 3.0, "name": "orders:guard"}
    assert guard_options({**options, "name": ""}) == {"timeout": 3.0, "name": "guard"}
    assert guard_options({"name": "n" * 64}) == {"name": "n" * 58 + ":guard"}
    assert options["namespace"] == "app/"


def test_an_engine_that_is_a_function_is_refused() -> None:
    engine: Any = len
    with pytest.raises(ClientUsageError, match="needs an engine by name"):
        guard_options({"engine": engine})


def test_a_token_function_runs_in_the_loop_of_the_application() -> None:
    threads: list[int] = []

    async def token() -> str:
        threads.append(threading.get_ident())
        return "secret"

    async def main() -> None:
        asking = guard_options({"token": token}).get("token")
        assert callable(asking)

        async def ask() -> str:
            assert callable(asking)
            return await asking()

        assert await asyncio.to_thread(asyncio.run, ask()) == "secret"
        assert threads == [threading.get_ident()]

    asyncio.run(main())
