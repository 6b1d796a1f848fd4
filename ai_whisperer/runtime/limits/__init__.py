"""How much may be used, and what happens at a limit: which limits hold (`stated`), which were reached (`reached`),
slots for loops, tokens and money that are set aside (`spending`), trees, deadlines, the number of agents that are
started.

What a limit leads to for a task, failing or waiting, is carried out by whoever asked.
"""
