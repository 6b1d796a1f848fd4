"""HTTP/1.1 as a client of model providers: addresses, connections, and the pool that keeps them."""
