"""The blocking classes for those of `etcd_aio.watch`.

Made by `python -m release.facade --write` from `etcd_aio.watch`: do not edit.
"""
