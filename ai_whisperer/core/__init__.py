"""Pure decisions: no await, no I/O, no clock. Given what is, say what follows."""
