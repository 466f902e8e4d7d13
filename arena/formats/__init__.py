"""Who plays whom, and what the results add up to: schedules, brackets, ladders, standings, and the time that is left.

Pure: what comes in are plans and results, what comes out are pairings and tables. It knows no database, no clock and no connection.
"""
