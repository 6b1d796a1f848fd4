"""Tools: what agents can do beside talking."""
