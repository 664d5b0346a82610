"""What the demonstration is made of: the load on the client, and the two ways to show it."""
