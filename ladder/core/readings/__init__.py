"""Readings over time: how often they come, where they lead, and which can go."""
