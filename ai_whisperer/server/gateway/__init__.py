"""Any node takes any client: what is asked of a session that another node has is asked there, and told here.

Two nodes have one WebSocket between them for each direction. All clients of a node share it: each has a channel of its
own, and is to the other node as if it had connected there. What happens in a session is sent to a node once, however
many of its clients follow it. A call is passed on at most once: the node that it comes to answers it, or says that it
does not have the session.
"""
