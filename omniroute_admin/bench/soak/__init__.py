"""What `manage.py soak` is made of: mixed load at a steady rate for long, and what it does to the processes."""
