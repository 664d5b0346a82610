"""The blocking classes for those of `etcd_aio.recipes.schedule`.

Made by `python -m release.facade --write` from `etcd_aio.recipes.schedule`: do not edit.
"""
