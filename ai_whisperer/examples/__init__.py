"""The workflows of the user guide: `whisperer demo` and `whisperer run` play them, and programs may."""
