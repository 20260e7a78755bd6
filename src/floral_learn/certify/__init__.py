"""Classifiers that say how many flipped labels a prediction survives."""
