"""The client on kine, which has a part of etcd's API: each row of the page about other servers."""

from collections.abc import Iterator

import pytest
from anyio.from_thread import start_blocking_portal

from etcd_aio import Client
from tests.support.kine import kine, need_kine
from tests.support.kine_cases import CASES, KineCase, refused

pytestmark = [pytest.mark.anyio, pytest.mark.nightly]


@pytest.fixture(scope="module")
def endpoint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    need_kine()
    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(kine(tmp_path_factory.mktemp("kine"))) as endpoint,
    ):
        yield endpoint


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.what.replace("`", "")[:60])
async def test_the_page_is_right(case: KineCase, endpoint: str) -> None:
    name = f"case-{CASES.index(case)}"
    async with Client(endpoint, timeout=30) as client:
        if case.verdict == "refused":
            await refused(case, client, name, endpoint)
        else:
            await case.use(client, name, endpoint)
        assert await client.get("ready") is None  # the client goes on
