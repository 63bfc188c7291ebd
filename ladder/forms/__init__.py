"""What pages of the ladder ask people to fill in."""
