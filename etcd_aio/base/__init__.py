"""Base: tools that all packages share: tasks and waiters, deadlines and pauses, closing, logs, options of calls."""
