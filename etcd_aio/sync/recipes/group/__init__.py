"""The blocking classes for those of `etcd_aio.recipes.group`.

Made by `python -m release.facade --write` from `etcd_aio.recipes.group`: do not edit.
"""
