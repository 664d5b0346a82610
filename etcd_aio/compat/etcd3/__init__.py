"""python-etcd3's API on `etcd_aio.sync`."""
