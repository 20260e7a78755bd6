"""Label attacks on data sets: ``poison(X, y) -> PoisonResult(y, indices, scores)``."""
