"""late_parts.py: each part of a client is made once, at its first use, and closing a client makes none."""

import pytest

from etcd_aio import Client
from etcd_aio.fake import FakeEtcd

PARTS = ("auth", "cluster", "maintenance", "leases")


@pytest.mark.parametrize("part", PARTS)
def test_a_part_is_made_once_at_its_first_use(part: str) -> None:
    client = Client()
    assert part not in vars(client._parts)
    assert getattr(client, part) is getattr(client, part)
    assert part in vars(client._parts)
    with pytest.raises(AttributeError):
        setattr(client, part, None)


@pytest.mark.anyio
async def test_a_client_that_gets_and_is_closed_has_made_no_part() -> None:
    async with FakeEtcd() as fake, fake.client() as client:
        await client.get("k")
    assert not {*PARTS, "keeper", "versions"} & {*vars(client._parts)}
