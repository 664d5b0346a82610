"""The page about tooz: its program runs, by the entry point, and prints what the page says."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from anyio.from_thread import BlockingPortal, start_blocking_portal

from etcd_aio.testing import EtcdServer
from tests.contrib.coordinators import coordinators
from tests.examples.blocks import python_blocks, read
from tests.examples.paths import PAGES, ROOT
from tests.support.small_proxy import small_proxy

PAGE = read(PAGES / "how-to" / "tooz.md")
(PROGRAM,) = python_blocks(PAGE)


def put_entry_points(folder: Path) -> None:
    """Make a folder for PYTHONPATH that is like an installation of this checkout, as to its entry points."""
    metadata = folder / "etcd_aio-0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: etcd-aio\nVersion: 0\n")
    groups = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"]
    lines = [line for group, names in groups.items() for line in (f"[{group}]", *map(" = ".join, names.items()))]
    (metadata / "entry_points.txt").write_text("\n".join(lines))


@pytest.mark.cluster
def test_the_program_prints_what_the_page_says(tmp_path: Path) -> None:
    put_entry_points(tmp_path)
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(EtcdServer()) as server:
        program = tmp_path / "coordinator.py"
        program.write_text(PROGRAM.code.replace("127.0.0.1:2379", server.endpoint.removeprefix("http://")))
        run = subprocess.run(
            [sys.executable, program],
            env={"PYTHONPATH": f"{tmp_path}:{ROOT}", "PATH": "/usr/bin:/bin"},
            capture_output=True,
            text=True,
            timeout=120,
        )
    assert run.returncode == 0, run.stderr
    assert run.stdout == PROGRAM.prints


@pytest.mark.cluster
def test_the_urls_with_a_dns_name_and_a_proxy_work(portal: BlockingPortal, server: EtcdServer) -> None:
    urls = re.findall(r"^etcd3\+aio://(.*\?(?:dns|proxy)=.*)$", PAGE, re.MULTILINE)
    assert [url.partition("?")[2].partition("=")[0] for url in urls] == ["dns", "proxy"]
    port = server.endpoint.rpartition(":")[2]
    with portal.wrap_async_context_manager(small_proxy()) as proxy:
        for url, endpoint in zip(urls, (f"http+dns://localhost:{port}#127.0.0.1", server.endpoint), strict=True):
            url = url.replace("etcd-headless.etcd:2379", f"localhost:{port}").replace("m1:2379", f"127.0.0.1:{port}")
            with coordinators(url.replace("proxy:3128", f"127.0.0.1:{proxy.port}")) as start:
                one = start(b"one")
                one.create_group(b"g").get()
                one.delete_group(b"g").get()
                assert endpoint in [member.endpoint for member in one._client().statistics()]
    assert set(proxy.places) == {("127.0.0.1", int(port))}
