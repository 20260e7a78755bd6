"""The defenses: scikit-learn classifiers that expect poisoned labels."""
