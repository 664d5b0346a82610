"""Measures many clients that wait for the same members."""
