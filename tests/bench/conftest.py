import sys
from pathlib import Path

# The tiny suite is shared by tests here and in tests/app.
sys.path.insert(0, str(Path(__file__).parent))
