"""sync/base_client.py: how a blocking client begins and ends, on a fake."""
