"""Live matches on a clock: asks seats, takes answers, enforces deadlines, keeps sessions.

It knows transports only by a Protocol, and no sockets, competitions or database.
"""
