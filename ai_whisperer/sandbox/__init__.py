"""Sandboxes: the operating system holds what a tool runs, with all its children."""
