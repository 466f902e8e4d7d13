"""People who play on the page: their tables, their house-bot opponents, and their limits."""
