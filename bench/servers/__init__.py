"""Parts of the server benchmark: servers as processes, clients with persistent connections, killed workers."""
