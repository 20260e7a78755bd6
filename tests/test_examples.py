"""The gallery: `make docs` runs every example, and each leaves a picture on the site.

Running them here again would double the time, so these tests look at what the build left; `make test` builds first.
"""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
EXAMPLES = sorted((ROOT / "examples").glob("plot_*.py"))
GALLERY = ROOT / "docs" / "gallery"
built = pytest.mark.skipif(not (GALLERY / "index.rst").is_file(), reason="the site is not built: make docs")


@pytest.mark.skipif(not EXAMPLES, reason="examples are not part of the source archive")
def test_there_are_at_least_twelve_and_each_has_a_title_and_says_what_it_shows():
    assert len(EXAMPLES) >= 12
    for path in EXAMPLES:
        assert re.match(r'"""\n\S.*\n=+\n\n\S', path.read_text(encoding="utf-8")), path.name
        assert "plt.show()" in path.read_text(encoding="utf-8"), path.name


@built
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_each_example_ran_and_drew_a_picture(path):
    import matplotlib.image

    copy = GALLERY / path.name
    assert copy.is_file(), "this example was never run: make docs"
    assert copy.read_text(encoding="utf-8") == path.read_text(encoding="utf-8"), "changed since the build: make docs"
    pictures = sorted((GALLERY / "images").glob(f"sphx_glr_{path.stem}_0*.png"))
    assert pictures
    for picture in pictures:
        pixels = matplotlib.image.imread(picture)[..., :3]
        assert pixels.std() > 0.02, f"{picture.name} is blank"
        # Every axis that was asked for has something in it: a half that is white was drawn on after it was shown.
        middle = pixels.shape[1] // 2
        assert (pixels[:, middle:] < 0.9).any(axis=(0, 2)).mean() > 0.2, f"the right half of {picture.name} is empty"
