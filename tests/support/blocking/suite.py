"""`--blocking`: integration tests, and contracts that go through a client, run through `etcd_aio.sync`.

Adapters have the interface of asyncio.
`adapters.py` has the adapters, `names.py` gives them to the test modules, and `left_out.py` names what is left out.
"""

from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.support.blocking.left_out import reason_of
from tests.support.blocking.names import replaced

_TESTS = Path(__file__).parents[2]
FOLDERS = (_TESTS / "integration", _TESTS / "contract")


class Blocking:
    """The plugin."""

    def __init__(self) -> None:
        self._names = ExitStack()
        self._names.enter_context(replaced())

    def pytest_configure(self, config: pytest.Config) -> None:
        """A client of asyncio that was never used needs no close, and tests leave some open."""
        config.addinivalue_line("filterwarnings", "ignore:unclosed <sync <Client .* IDLE>:ResourceWarning")

    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        """Leave out what is listed, and the other folders."""
        self._names.close()
        left_out = [item for item in items if item.path.parent not in FOLDERS or reason_of(item) is not None]
        items[:] = [item for item in items if item not in set(left_out)]
        config.hook.pytest_deselected(items=left_out)
