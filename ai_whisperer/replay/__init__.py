"""Conversation scripts: lines to agents and rooms, waits, expectations, crashes; read, checked as a whole, and played.

`script` reads them, `playing` plays one in a session at some `place`, `expecting` looks whether what is expected has
come, `junit` writes the outcome for programs. Nothing here knows whether the session is in this process or on a server.
"""
