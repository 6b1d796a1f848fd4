"""Calls that wait: for an answer, a lock, a person, or their turn at a resource; and waits that would never end,
which are refused as cycles. `permission` is asked before a tool call begins.

What a call does once it may begin is not decided here, nor what a question or an answer is: that is `messaging`.
"""
