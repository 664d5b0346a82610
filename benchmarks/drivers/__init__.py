"""Drivers: one small program per client, in its own process, with the protocol of `loop`."""
