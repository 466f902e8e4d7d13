"""Bot processes: started from a command line, isolated, limited, watched and ended.

It knows nothing of matches. The bots' messages go through pipes and sockets that others hold.
`worker_pool` runs our own long computations in processes; these are not isolated.
"""
