"""Which function answers which method: one module for each of those of the protocol. Importing them registers them."""

from ai_whisperer.server.answers import agents, locks, mail, resources, rooms, schedules, sessions, subscriptions, tasks

__all__ = ["agents", "locks", "mail", "resources", "rooms", "schedules", "sessions", "subscriptions", "tasks"]
