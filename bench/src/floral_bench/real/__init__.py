"""``floral bench real``: labels that people, crowds and labelling functions got wrong, and planted errors."""
