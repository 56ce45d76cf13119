"""Programs over several devices; packages import the module and ask nothing of it."""
