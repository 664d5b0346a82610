"""The generator of the blocking classes, `etcd_aio.sync`, from the sources of the asyncio classes."""
