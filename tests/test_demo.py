"""`make demo`: a table and a picture, and the page that shows the table."""

import re
import runpy
from pathlib import Path

import matplotlib
import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[1]
DEMO = ROOT / "examples" / "plot_demo.py"
pytestmark = pytest.mark.skipif(not DEMO.is_file(), reason="examples are not part of the source archive")


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    matplotlib.use("Agg")
    return runpy.run_path(str(DEMO))


GIVEN, FIXED, CLEAN = "SVC on the given labels", "50 most doubtful labels fixed by a person", "SVC on the true labels"
TEN, FIFTY = (f"{n} answers to what LabelReview asks" for n in (10, 50))


def check(means):
    for data in means[CLEAN]:
        assert means[GIVEN][data] < means[FIFTY][data] <= means[CLEAN][data] + 0.01
    assert means[TEN]["moon"] > means[FIXED]["moon"] + 0.03, "ten asked rows tell more than fifty doubtful ones"


def test_a_few_answers_bring_back_what_the_flips_took_on_moon(demo):
    check(demo["table"](["moon"], [1, 2]))


@pytest.mark.slow
def test_the_page_has_the_table_of_the_whole_demo(demo):
    means = demo["table"]()
    check(means)
    page = (ROOT / "docs" / "getting-started.md").read_text(encoding="utf-8")
    for name, by_data in means.items():
        shown = re.search(rf"\| {name}[^|]*\|" + r" (0\.\d{3}) \|" * 3, page).groups()
        np.testing.assert_allclose(list(map(float, shown)), list(by_data.values()), atol=3e-3, err_msg=name)
