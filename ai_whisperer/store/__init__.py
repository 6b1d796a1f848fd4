"""The one durable log and its tables."""
