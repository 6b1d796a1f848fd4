"""Names of models that are none of a provider, and prefixes that mean more than the name of one."""

from __future__ import annotations

AUTO = "auto"
"""The model that the environment offers, see `models.detection`."""
SCRIPTED = "scripted"
SCRIPTED_DEMO = "scripted:demo"
"""The scripted model with the rules that come with the package: it plays the workflows of the user guide."""
ANTHROPIC_PREFIX = "anthropic"
"""The prefix of the models that speak Anthropic's messages."""
