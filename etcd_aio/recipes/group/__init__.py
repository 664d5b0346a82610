"""Groups: the processes that are there now, and which of them a key belongs to."""
