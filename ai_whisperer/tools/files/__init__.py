"""The file tools: what agents read and write in their own folder and in those that they are granted."""

from __future__ import annotations

from ai_whisperer.tools.files.changing import edit_file, write_file
from ai_whisperer.tools.files.listing import list_directory
from ai_whisperer.tools.files.reading import read_file
from ai_whisperer.tools.files.remembering import memory
from ai_whisperer.tools.files.searching import search_files

FILE_TOOLS = (read_file, write_file, edit_file, list_directory, search_files, memory)
