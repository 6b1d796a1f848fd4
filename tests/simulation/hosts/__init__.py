"""Several nodes on one simulated database, in one simulated event loop.

Real are the store for PostgreSQL above its connections, beating, judging, claiming, the duties of a node and all that
runs in a session. Simulated are the database, the connections to it, the machines, and the threads that beat.
"""
