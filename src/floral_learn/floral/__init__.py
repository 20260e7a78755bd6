"""FloralClassifier: settings, inputs (arrays, files, tensors, dask), the game's problem, the fitted model."""
