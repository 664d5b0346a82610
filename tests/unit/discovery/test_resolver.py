"""discovery/resolver.py: the fixed list is always the same and sends no query."""

import pytest

from etcd_aio.balancer import parse_endpoints
from etcd_aio.discovery import StaticResolver

pytestmark = pytest.mark.anyio


async def test_the_static_list_is_always_the_same_and_sends_no_query() -> None:
    endpoints = parse_endpoints("m1,m2")
    resolver = StaticResolver(endpoints)
    assert resolver.name == ""
    found = await resolver.resolve(1.0)
    assert (found.endpoints, found.ttl) == (endpoints, float("inf"))
