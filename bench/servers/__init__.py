"""What the server's benchmark is made of: servers as processes, clients that keep their connections, kills."""
