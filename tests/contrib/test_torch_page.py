"""The page about torchrun: its endpoints with a DNS name and a proxy work; contrib/torch/parameters.py reads them."""

import re

import pytest
from anyio.from_thread import BlockingPortal

from etcd_aio.contrib.torch.parameters import read_parameters
from etcd_aio.sync import Client
from etcd_aio.testing import EtcdServer
from tests.examples.blocks import read
from tests.examples.paths import PAGES
from tests.support.small_proxy import small_proxy

PAGE = read(PAGES / "how-to" / "torchrun.md")


@pytest.mark.cluster
def test_the_endpoints_with_a_dns_name_and_a_proxy_work(portal: BlockingPortal, server: EtcdServer) -> None:
    lines = re.findall(r"^--rdzv-endpoint=(\S+)(?: --rdzv-conf=(\S+))?$", PAGE, re.MULTILINE)
    assert [bool(config) for _, config in lines] == [False, True]
    port = server.endpoint.rpartition(":")[2]
    with portal.wrap_async_context_manager(small_proxy()) as proxy:
        for place, text in lines:
            place = place.replace("etcd-headless.etcd:2379", f"localhost:{port}").replace(
                "m1:2379", f"127.0.0.1:{port}"
            )
            text = text.replace("proxy:3128", f"127.0.0.1:{proxy.port}")
            config = dict(pair.split("=", 1) for pair in text.split(",") if pair)  # as torchrun does
            with Client(**read_parameters(place, config).client_options()) as client:
                client.ping()
                assert len(proxy.places) == bool(config)
                assert any(place in one.endpoint for one in client.statistics())
    assert proxy.places == [("127.0.0.1", int(port))]
