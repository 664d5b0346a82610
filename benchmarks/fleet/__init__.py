"""Many clients at once: what a whole fleet asks of its members while it waits for them."""
