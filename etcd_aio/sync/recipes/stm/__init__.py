"""The blocking classes for those of `etcd_aio.recipes.stm`.

Made by `python -m release.facade --write` from `etcd_aio.recipes.stm`: do not edit.
"""
