"""What programs, and the server for its clients, can do with a session: `AsyncAgentSessionManager`. Callers are
checked here, and everything is handed to the rooms below as one decision.
"""
