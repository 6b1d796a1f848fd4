"""Which function answers which method: one module for each of those of the protocol. Importing them registers them."""

from ai_whisperer.server.answers import agents, mail, resources, rooms, schedules, sessions, subscriptions, tasks

__all__ = ["agents", "mail", "resources", "rooms", "schedules", "sessions", "subscriptions", "tasks"]
from ai_whisperer.server.answers import locks

__all__ = ["agents", "locks", "mail", "rooms", "schedules", "sessions", "subscriptions", "tasks"]
