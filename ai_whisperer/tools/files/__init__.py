"""The file tools: what agents read and write in their own folder and in those that they are granted."""
