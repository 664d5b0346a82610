"""Transactions as functions: `client.stm`."""
