"""contrib/pydantic_settings.py: settings of pydantic-settings that come from etcd, also where no event loop runs."""

import os
from collections.abc import Iterator
from unittest import mock

import pytest
from anyio.from_thread import start_blocking_portal
from pydantic import BaseModel, SecretStr
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource

from etcd_aio import NoAvailableEndpointsError
from etcd_aio.contrib.config import InvalidSettingsError
from etcd_aio.contrib.pydantic_settings import EtcdSettingsSource, Snapshot, load_snapshot_blocking
from tests.support.on_fake import ServedFake

SECRET = "s3cr3t-value"


class Limits(BaseModel):
    max: int = 1


def settings_of(snapshot: Snapshot) -> type[BaseSettings]:
    class Settings(BaseSettings):
        debug: bool = False
        title: str = "none"
        password: SecretStr = SecretStr("")
        limits: Limits = Limits()

        @classmethod
        def settings_customise_sources(
            cls,
            settings_cls: type[BaseSettings],
            init_settings: PydanticBaseSettingsSource,
            env_settings: PydanticBaseSettingsSource,
            dotenv_settings: PydanticBaseSettingsSource,
            file_secret_settings: PydanticBaseSettingsSource,
        ) -> tuple[PydanticBaseSettingsSource, ...]:
            return init_settings, env_settings, EtcdSettingsSource(settings_cls, snapshot)

    return Settings


def test_the_order_of_the_sources_counts() -> None:
    snapshot = Snapshot({"debug": b"true", "title": b"1", "limits/max": b"3", "password": b"123"}, 5)
    with mock.patch.dict(os.environ, {"TITLE": "from the environment"}):
        found = settings_of(snapshot)()
    shown = found.model_dump()
    assert shown["password"].get_secret_value() == "123"
    assert {**shown, "password": ""} == {
        "debug": True,
        "title": "from the environment",
        "limits": {"max": 3},
        "password": "",
    }


def test_no_repr_has_values() -> None:
    snapshot = Snapshot({"title": SECRET.encode()}, 5)
    source = EtcdSettingsSource(settings_of(snapshot), snapshot)
    assert repr(source) == "<EtcdSettingsSource of title>"
    assert SECRET not in repr(snapshot)
    assert source() == {"title": SECRET}
    fields = settings_of(snapshot).model_fields
    assert source.get_field_value(fields["title"], "title") == (SECRET, "title", False)
    assert source.get_field_value(fields["debug"], "debug") == (None, "debug", False)


def test_a_key_that_fits_nothing_is_an_error_without_values() -> None:
    snapshot = Snapshot({"title": b"\xff", "debug": b"true"}, 5)
    with pytest.raises(
        InvalidSettingsError, match="invalid settings at revision 5: title: it is not UTF-8 text"
    ) as raised:
        settings_of(snapshot)()
    assert raised.value.problems == {"title": "it is not UTF-8 text"}
    assert raised.value.__context__ is None


@pytest.fixture
def endpoint() -> Iterator[str]:
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(ServedFake()) as fake:
        portal.call(fake.load, {"app/title": "from etcd", "apple": "not this"})
        yield fake.endpoint


def test_a_snapshot_is_read_without_an_event_loop(endpoint: str) -> None:
    found = load_snapshot_blocking(endpoint, "app/")
    assert dict(found) == {"title": b"from etcd"}
    assert found.revision == 2
    assert settings_of(found)().model_dump()["title"] == "from etcd"


@pytest.mark.anyio
async def test_a_snapshot_is_read_while_an_event_loop_waits(endpoint: str) -> None:
    assert dict(load_snapshot_blocking(endpoint, "app/")) == {"title": b"from etcd"}


def test_without_etcd_it_raises() -> None:
    with pytest.raises(NoAvailableEndpointsError):
        load_snapshot_blocking("http://127.0.0.1:1", "app/", timeout=0.1)
