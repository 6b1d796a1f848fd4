"""Databases as earlier versions left them, as SQL that people can read."""
