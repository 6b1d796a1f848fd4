"""Fetching pages: names are resolved and checked here, and the connection goes to the address that was checked."""
