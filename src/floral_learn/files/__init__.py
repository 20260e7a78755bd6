"""Files written whole or not at all, and model files that are read with limits."""
