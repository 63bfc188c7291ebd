"""What an operator asks when something is wrong: each check says what is, and how to mend it."""
