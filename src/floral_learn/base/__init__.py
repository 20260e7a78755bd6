"""What every estimator and result shares: validation, callbacks, fits that end or never were, install lines."""
