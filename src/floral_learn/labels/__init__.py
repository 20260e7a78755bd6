"""How probable it is that a label is wrong: votes, suspicion and flags (being joined into one evidence)."""
