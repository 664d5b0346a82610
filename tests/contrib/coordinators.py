"""Coordinators of tooz for tests: started, and stopped at the end."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import parse_qs

from oslo_utils import netutils

from etcd_aio.contrib.tooz import EtcdDriver

Start = Callable[..., EtcdDriver]


@contextmanager
def coordinators(hosts: str) -> Iterator[Start]:
    """Start coordinators; all are stopped at the end."""
    started: list[EtcdDriver] = []

    def start(member: bytes, **options: Any) -> EtcdDriver:
        url = netutils.urlsplit(f"etcd3+aio://{hosts}")
        driver = EtcdDriver(member, url, parse_qs(url.query) | {name: [value] for name, value in options.items()})
        started.append(driver)
        driver.start()
        return driver

    try:
        yield start
    finally:
        for driver in started:
            if driver.is_started:
                driver.stop()


def until(condition: Callable[[], object]) -> None:
    """Wait for what takes seconds at most."""
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end, "it has not come true"
        time.sleep(0.05)
