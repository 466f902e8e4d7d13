"""Bot processes: started from a command line, isolated, limited, watched and ended.

It knows nothing of matches. What the bots say goes through pipes and sockets that others hold.
`worker_pool` has the processes that do long work of ours; they are not isolated.
"""
