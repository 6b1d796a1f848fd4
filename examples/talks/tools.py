"""The tools that the talks need: those of the workflows."""

from ai_whisperer.examples.tools import combine_and_test, read_feedback

__all__ = ["combine_and_test", "read_feedback"]
