"""The workflows of the user guide, for the demo and for `whisperer run`."""
