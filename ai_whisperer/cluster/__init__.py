"""Nodes that share a database: who lives, who has which session, and who takes what a dead node leaves.

Work is distributed, coordination has one writer: each session is at one node, and all that is decided in it is decided
there. The database is the only truth: membership, claims and fences are rows.
"""
