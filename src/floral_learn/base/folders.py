"""Where the user's own files of this library lie: downloads and embeddings."""

import os
import sys
from pathlib import Path


def user_cache() -> Path:
    """Return the folder of downloads and embeddings (it may not exist yet); ``XDG_CACHE_HOME`` moves it anywhere."""
    if given := os.environ.get("XDG_CACHE_HOME"):
        base = Path(given)
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    elif sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA", Path.home() / "AppData" / "Local"))
    else:
        base = Path.home() / ".cache"
    return base / "floral-learn"
