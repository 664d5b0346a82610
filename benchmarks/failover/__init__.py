"""What clients do while members die, freeze and vanish: an open loop beside the official Go client, fault by fault."""
