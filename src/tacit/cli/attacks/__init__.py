"""What `tacit attack` is made of: targets from files and settings, and reports of findings."""
