"""The blocking classes for those of `etcd_aio.kv`.

Made by `python -m release.facade --write` from `etcd_aio.kv`: do not edit.
"""
