"""``floral bench crowd``: aggregators of votes side by side, under attacks on the votes."""
