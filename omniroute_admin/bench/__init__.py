"""What `manage.py bench` is made of: a fleet, a real server, a client of its own, floors beside every number.

It measures and never fails on a number; whether a target was met stands in the table.
"""
