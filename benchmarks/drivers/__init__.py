"""Drivers: one small program per client, each run by its own interpreter, all speaking the protocol of `loop`."""
