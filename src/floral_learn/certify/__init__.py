"""How many flipped training labels a prediction survives: exactly (kernel ridge), by smoothing, by partitions."""
