"""The server: sessions for many clients, over WebSocket."""
