"""The sources as griffe reads them: `etcd_aio.dataclass` is `dataclasses`, which griffe knows, with another start."""

from typing import Any

import griffe


class LateDataclasses(griffe.Extension):
    """Lets griffe see the dataclasses of the library, and so their constructors."""

    def on_alias_instance(self, *, alias: griffe.Alias, **kwargs: Any) -> None:
        """Change an import. griffe calls this when it has read one."""
        if alias.target_path == "etcd_aio.dataclass.dataclass":
            alias.target_path = "dataclasses.dataclass"
