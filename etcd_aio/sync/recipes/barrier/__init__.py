"""The blocking classes for those of `etcd_aio.recipes.barrier`.

Made by `python -m release.facade --write` from `etcd_aio.recipes.barrier`: do not edit.
"""
