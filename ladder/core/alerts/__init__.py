"""What operators are to be told of, and when."""
