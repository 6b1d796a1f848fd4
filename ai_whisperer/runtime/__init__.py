"""The running session: agents, their AI loops, mail, timers and subscribers on one event loop."""
