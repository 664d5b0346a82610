"""Sync: the client for code that blocks; the modules are made by `python -m release.facade --write`."""
