"""What people and other tools read: a summary, Cube files, tables."""
