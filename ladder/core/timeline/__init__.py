"""What changed on the ladder, exactly when, and why."""
