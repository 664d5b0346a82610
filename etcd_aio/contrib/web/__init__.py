"""The shared part of the modules for web frameworks: an application's client, background tasks of the leader, probes.

`application.py` is the client from the start of an application to its end. `jobs.py` runs the background tasks of which
only one worker at a time runs each, `singleton.py` a block that one worker runs once, and `readiness.py` answers the
probes. Each framework has a module of its own beside this package, with one class.
"""

from etcd_aio.contrib.web.application import ApplicationOptions as ApplicationOptions
from etcd_aio.contrib.web.application import EtcdApplication as EtcdApplication
from etcd_aio.contrib.web.application import Ready as Ready
from etcd_aio.contrib.web.readiness import Document as Document
from etcd_aio.contrib.web.readiness import Readiness as Readiness
from etcd_aio.contrib.web.singleton import Singleton as Singleton
