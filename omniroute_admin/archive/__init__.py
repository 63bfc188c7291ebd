"""One logical archive of everything an installation keeps, the same for SQLite and PostgreSQL."""
