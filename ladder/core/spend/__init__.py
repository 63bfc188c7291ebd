"""What was spent: how an event is booked, added up, and kept when it is old."""
