"""What all of one session is built on: its store, its log, its clock and timers, and the decision, which changes
memory and store together and tells of it. `roles` says how the rooms above it know agents and loops.

Nothing is decided here about agents, tasks or mail.
"""
