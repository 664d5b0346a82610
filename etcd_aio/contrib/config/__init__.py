"""Live configuration: settings from etcd, validated as a whole, and kept up to date.

`live.py` is `LiveConfig`. `snapshot.py` is the keys of a prefix at one revision, and `saved.py` the file that has the
last good ones. `hints.py` finds the type of a setting, `document.py` makes nested data of keys and `models.py` makes
settings of that, with `dataclass.py` for dataclasses; these are pure.
"""

from etcd_aio.contrib.config.live import ConfigChange as ConfigChange
from etcd_aio.contrib.config.live import LiveConfig as LiveConfig
from etcd_aio.contrib.config.live import OnInvalid as OnInvalid
from etcd_aio.contrib.config.models import InvalidSettingsError as InvalidSettingsError
from etcd_aio.contrib.config.snapshot import Snapshot as Snapshot
from etcd_aio.contrib.config.snapshot import load_snapshot as load_snapshot
from etcd_aio.contrib.config.snapshot import load_snapshot_blocking as load_snapshot_blocking
