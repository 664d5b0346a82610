"""Queues: items in order, or by priority, each for one consumer."""
