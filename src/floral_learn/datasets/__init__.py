"""The paper's data sets, each behind a loader that returns a ``Dataset``."""
