"""In a notebook an estimator links to its page of the reference, where the site has an address."""

import re
from pathlib import Path

import pytest
from sklearn.base import BaseEstimator

import floral_learn
from floral_learn import paper
from floral_learn.base import estimator
from floral_learn.certify import SpectralFeatures

API = Path(__file__).resolve().parents[2] / "docs" / "api"


def estimators():
    found = [getattr(room, name) for room in (floral_learn, paper) for name in room.__all__]
    return [kind for kind in found if isinstance(kind, type) and issubclass(kind, BaseEstimator)]


def pages():
    """Full names of everything that has a page of its own in the reference."""
    found = set()
    for path in API.glob("*.rst"):
        module = ""
        for line in path.read_text(encoding="utf-8").splitlines():
            if named := re.match(r"\.\. currentmodule:: (\S+)", line):
                module = named[1]
            elif name := re.match(r"   (\w+)$", line):
                found.add(f"{module}.{name[1]}")
    return found


@pytest.mark.skipif(not API.is_dir(), reason="docs are not part of the source archive")
def test_every_estimator_links_to_a_page_that_there_is(monkeypatch):
    pytest.importorskip("torch")
    monkeypatch.setenv("FLORAL_DOCS", "https://docs.example.org/")
    known = pages()
    assert len(estimators()) > 10
    for kind in [*estimators(), SpectralFeatures]:
        link = kind._get_doc_link(kind.__new__(kind))
        found = re.fullmatch(r"https://docs.example.org/api/generated/([\w.]+)\.html", link)
        assert found[1] in known, kind


def test_the_link_is_in_the_html_form_and_not_where_no_address_is_known(monkeypatch):
    model = floral_learn.FloralClassifier()
    monkeypatch.setenv("FLORAL_DOCS", "https://docs.example.org/site")
    assert 'href="https://docs.example.org/site/api/generated/floral_learn.FloralClassifier.html"' in repr_of(model)
    monkeypatch.delenv("FLORAL_DOCS")
    monkeypatch.setattr(estimator, "_published", lambda: "")
    assert "api/generated" not in repr_of(model)
    monkeypatch.setattr(estimator, "_published", lambda: "https://published.example.org")
    assert "https://published.example.org/api/generated/" in repr_of(model)


def test_a_class_of_the_users_own_links_nowhere(monkeypatch):
    monkeypatch.setenv("FLORAL_DOCS", "https://docs.example.org")

    class Mine(floral_learn.FloralClassifier):
        pass

    assert "docs.example.org" not in repr_of(Mine())


def repr_of(model):
    return model._repr_mimebundle_()["text/html"]
