"""Sockets and pipes: bots connect, log in and are throttled, frames go to the referee, and HTTP comes in.

It knows the page and the instructor by Protocols, and no competition.
"""
