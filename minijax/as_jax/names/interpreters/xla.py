"""Programs as XLA takes them; packages import the module and ask nothing of it."""
