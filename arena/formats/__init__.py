"""Who plays whom, and what the results add up to: schedules, brackets, ladders, standings. Pure."""
