"""What runs: sessions of agents, in one event loop. The rooms, the lower ones first:

`session` ← `limits`, `waiting` ← `messaging` ← `agents` ← `life` ← `api`
"""
