"""The page of a program: all its stages in one file, each line linked to what became of it."""
