"""Live matches on a clock: asks seats, takes answers, keeps deadlines and sessions.

It knows transports by a Protocol alone, and no sockets, competitions or database.
"""
