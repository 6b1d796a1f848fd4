"""For tests of programs that use agents: virtual time, a seeded event loop, a real HTTP model server."""
