"""What every test shares: where the real data lie, and a quiet plotting backend."""

import os
from pathlib import Path

os.environ.setdefault("MPLBACKEND", "Agg")
_BESIDE = Path(__file__).resolve().parents[2] / "shared" / "data"
if "FLORAL_DATA" not in os.environ and _BESIDE.is_dir():
    os.environ["FLORAL_DATA"] = str(_BESIDE)
