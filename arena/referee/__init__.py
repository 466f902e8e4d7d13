"""Live matches on a clock: seats are asked, answers taken and deadlines kept, over an abstract transport."""
