"""The commands, in a module for each group of them. What a command needs beyond its options it imports when it runs."""
