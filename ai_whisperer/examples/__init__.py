"""The workflows of the user guide, and the demo that plays them all: commands run them, and programs may."""
