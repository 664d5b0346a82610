"""The blocking classes for those of `etcd_aio.calls`.

Made by `python -m release.facade --write` from `etcd_aio.calls`: do not edit.
"""
