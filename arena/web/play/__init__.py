"""People who play at the page: their tables, the house bots beside them, and their limits."""
