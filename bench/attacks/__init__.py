"""Parts of the attack benchmark: what is attacked, and one file for each kind of attack."""
