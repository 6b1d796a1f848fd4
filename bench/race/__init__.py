"""The race: the same workloads for us, the floor and other frameworks, each in an environment of its own."""
