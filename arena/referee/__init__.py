"""Live matches on a clock: seats are asked, answers are taken, deadlines are kept, and sessions outlive their connections.

The referee knows a transport by a Protocol alone, and neither sockets nor competitions nor the database.
"""
