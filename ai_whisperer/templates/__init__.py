"""Reusable agent definitions: Markdown files with YAML front matter, whose body is the system prompt."""
