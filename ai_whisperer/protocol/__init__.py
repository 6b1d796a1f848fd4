"""What goes over the wire: JSON-RPC 2.0 without I/O, and the methods with their typed params and results."""
