"""The blocking classes for those of `etcd_aio.recipes.work_queue`.

Made by `python -m release.facade --write` from `etcd_aio.recipes.work_queue`: do not edit.
"""
