"""How bytes reach the memory that they are wanted in."""
