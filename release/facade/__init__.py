"""The generator of `etcd_aio.sync`, the blocking classes, from the sources of the asyncio classes; see `__main__.py`."""
