"""Control flow: branches, loops, scans, and what is built on them."""
