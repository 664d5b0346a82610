"""Schedules: ticks that one of many processes starts."""
