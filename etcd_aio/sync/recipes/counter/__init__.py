"""The blocking classes for those of `etcd_aio.recipes.counter`.

Made by `python -m release.facade --write` from `etcd_aio.recipes.counter`: do not edit.
"""
