"""Shortcuts of a client: they send nothing, and import what they need at the first use."""

import subprocess
import sys
from pathlib import Path

from etcd_aio import Client

ROOT = Path(__file__).parent.parent.parent


def test_they_make_objects_that_share_the_leases_of_the_client() -> None:
    client = Client()
    lock = client.lock("a")
    assert lock.name == b"a"
    assert client.rwlock("a").name == b"a"
    assert client.semaphore("a", limit=3).limit == 3
    assert not client.session().is_orphan
    assert client._lease_pool() is client._lease_pool()
    assert Client()._pool is None


def test_an_error_names_the_method_of_the_client() -> None:
    assert Client.lock.__qualname__ == "Client.lock"


def test_nothing_of_them_is_imported_with_the_client() -> None:
    code = (
        "import sys, etcd_aio; client = etcd_aio.Client(); "
        "assert not [name for name in sys.modules if name.startswith('etcd_aio.concurrency')]; "
        "client.lock('a'); assert 'etcd_aio.concurrency' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)
