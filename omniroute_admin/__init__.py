"""The project: what belongs to no app, and what stands on all of them."""

VERSION = "0.1.0"
"""The product's version, as in pyproject.toml."""
