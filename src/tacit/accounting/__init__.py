"""What events cost."""
