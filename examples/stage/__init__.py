"""Parts of the demonstration: the load on the client, and two screens that show it."""
