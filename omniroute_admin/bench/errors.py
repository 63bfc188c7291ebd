"""What stops a measurement."""


class BenchError(Exception):
    """Something cannot be measured; the text says what and why."""
