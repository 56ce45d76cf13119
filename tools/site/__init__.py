"""The site of the documents: what Sphinx is given, and what walks over its result."""
