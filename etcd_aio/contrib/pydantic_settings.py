"""pydantic-settings: a source of settings that were read from etcd.

    class Settings(BaseSettings):
        debug: bool = False

        @classmethod
        def settings_customise_sources(cls, settings_cls, init_settings, env_settings, **others):
            snapshot = load_snapshot_blocking("http://m1:2379", "app/config/")
            return init_settings, env_settings, EtcdSettingsSource(settings_cls, snapshot)

pydantic-settings asks its sources at once and without an event loop, so what they have is read before. For settings
that change while the program runs, see `etcd_aio.contrib.config.LiveConfig`.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from etcd_aio.base import when_constructed
from etcd_aio.contrib.config.document import UnusableKeyError, nested
from etcd_aio.contrib.config.models import InvalidSettingsError
from etcd_aio.contrib.config.snapshot import Snapshot as Snapshot
from etcd_aio.contrib.config.snapshot import load_snapshot as load_snapshot
from etcd_aio.contrib.config.snapshot import load_snapshot_blocking as load_snapshot_blocking
from etcd_aio.contrib.missing import missing

try:
    from pydantic_settings import BaseSettings, PydanticBaseSettingsSource
except ModuleNotFoundError as _error:
    raise missing(__name__, "pydantic-settings", _error) from _error

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo


class EtcdSettingsSource(PydanticBaseSettingsSource):
    """Settings from the keys of a prefix, as `LiveConfig` reads them: a key is a path, its value JSON or text.

    pydantic's errors repeat the values that they refuse, unless the model has `hide_input_in_errors=True`. And
    `BaseSettings` refuses names that it does not have: with `extra="ignore"` a key more in etcd stops no start.

    Args:
        settings_cls: the class of the settings.
        snapshot: what `load_snapshot` or `load_snapshot_blocking` has read.
    """

    def __init__(self, settings_cls: type[BaseSettings], snapshot: Mapping[str, bytes]) -> None:
        super().__init__(settings_cls)
        self._snapshot = snapshot

    @when_constructed
    def __repr__(self) -> str:
        return f"<EtcdSettingsSource of {', '.join(self._snapshot) or 'no keys'}>"

    def get_field_value(self, field: "FieldInfo", field_name: str) -> tuple[object, str, bool]:
        """The value of one field, for pydantic-settings."""
        for name in (field_name, field.alias, field.validation_alias):
            if isinstance(name, str) and name in (found := self()):
                return found[name], name, False
        return None, field_name, False

    def __call__(self) -> dict[str, Any]:
        """The settings, as nested data.

        Raises:
            InvalidSettingsError: a value is not text, or a key is within one that is no object.
        """
        try:
            return nested(self._snapshot, self.settings_cls)
        except UnusableKeyError as error:
            problems = {error.key: error.reason}
        # Outside of the handler, so that it has no context.
        raise InvalidSettingsError(problems, getattr(self._snapshot, "revision", 0))
