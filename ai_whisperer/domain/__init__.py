"""The words of the system, by concept: records, states, what is told of them. Nothing here decides or does anything."""
