"""The server: what a running process offers to people and programs outside."""
