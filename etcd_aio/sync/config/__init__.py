"""The blocking classes for those of `etcd_aio.config`.

Made by `python -m release.facade --write` from `etcd_aio.config`: do not edit.
"""
