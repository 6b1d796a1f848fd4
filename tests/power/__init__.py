"""The power is cut at any call into the disk while the whole runtime is at work: nothing that was told is lost."""
