"""The limit of a watch that is a default of `client.watch()`; apart, so that no other call loads watches."""

from typing import Final

DEFAULT_MAX_PENDING: Final = 16 * 2**20
"""Bytes: a third of a second for a consumer that takes a hundred thousand small events in a second."""
