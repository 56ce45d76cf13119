"""What programs say of where their own values are: layouts in memory, rules of partitioning."""
