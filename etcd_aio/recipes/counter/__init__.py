"""Counters and ids: numbers that many processes change."""
