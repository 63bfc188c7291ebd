"""The demo fleet: what it is, and how it moves by itself."""
