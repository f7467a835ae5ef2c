"""The life of generations: which are open in this process, which one answers, and what an operator may do."""
