"""Who plays whom, and what the results add up to: schedules, brackets, ladders, standings, ETAs.

Pure: plans and results come in, pairings and tables come out. No database, clock or connection.
"""
