"""The blocking classes for those of `etcd_aio.recipes.queue`.

Made by `python -m release.facade --write` from `etcd_aio.recipes.queue`: do not edit.
"""
