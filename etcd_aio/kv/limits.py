"""The limit of a scan that is a default of `client.scan()`; apart, so that no other call loads scans."""

from typing import Final

DEFAULT_PAGE_SIZE: Final = 1000
"""The number of keys that etcd's own mirror reads at once. Decoding that many small keys takes a few milliseconds."""
