"""Limits of time that the other clients do not have: nothing waits for ever for a server that does not answer."""

from typing import Final

CALL_SECONDS: Final = 30.0
"""For a call, and for the creation of a watch, of a client without a `timeout`."""

OUTAGE_SECONDS: Final = 10.0
"""Without any server, after which a watch ends with an error. A shorter outage goes unnoticed."""
