"""Programs for the cores of one device."""
