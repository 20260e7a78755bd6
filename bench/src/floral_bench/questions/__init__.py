"""``floral bench questions``: what answers buy, by who chooses the rows and how the answers are read."""
