"""Barriers: processes that wait for a key, or for each other."""
