"""The documents tell the truth: their Python runs, their commands run, their links lead somewhere, no name is missing.

A block that is not run has a line ``<!-- not run: reason -->`` before it. Pages under docs/results record what was run
on a given day and are not run again.
"""

import importlib
import json
import os
import re
import shlex
import subprocess
import sys
import warnings
from pathlib import Path
from urllib.parse import urlparse

import numpy as np
import pandas as pd
import pytest

import floral_learn
from floral_learn.app import make_app
from floral_learn.datasets import sample_table

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
pytestmark = pytest.mark.skipif(not DOCS.is_dir(), reason="docs are not part of the source archive")
BUILT = {"gallery", "generated", "backreferences", "_ext", "_static", "_templates"}
PAGES = [
    page
    for page in [*sorted(ROOT.glob("*.md")), *sorted(DOCS.rglob("*.md")), *sorted(ROOT.glob(".github/**/*.md"))]
    if not BUILT & set(page.parts)
]
# Their rooms run these, with checks of their own.
ELSEWHERE = {"attacks.md", "crowd.md"}
ELSEWHERE |= {"boosting.md"}  # below, with the libraries that are installed
BLOCK = re.compile(r"(?:<!-- not run: (?P<reason>[^>]+) -->\n)?^```(?P<kind>\w*)\n(?P<code>.*?)^```", re.S | re.M)
# Commands that cannot run inside a test, wherever they stand.
NOT_RUN = {
    "pip install": "tests/test_wheel.py builds and installs the wheel",
    "make": "tests run inside `make test`; tests/test_demo.py runs the demo",
}


def name_of(page):
    return str(page.relative_to(ROOT))


def blocks(page, *kinds):
    text = page.read_text(encoding="utf-8")
    return [m["code"] for m in BLOCK.finditer(text) if m["kind"] in kinds and not m["reason"]]


WITH_PYTHON = [
    page for page in PAGES if "results" not in page.parts and page.name not in ELSEWHERE and blocks(page, "python")
]


@pytest.mark.parametrize("page", WITH_PYTHON, ids=name_of)
def test_python_of_a_page_runs_from_top_to_bottom(page, tmp_path, monkeypatch):
    import matplotlib.pyplot as plt

    monkeypatch.chdir(tmp_path)
    names = {"__name__": "__main__"}
    for code in blocks(page, "python"):
        exec(compile(code, name_of(page), "exec"), names)
    plt.close("all")


@pytest.mark.parametrize("library", ["xgboost", "lightgbm", "catboost", "sklearn.ensemble"])
def test_the_page_on_boosting_runs_with_each_library_that_is_installed(library, tmp_path, monkeypatch):
    pytest.importorskip(library)
    monkeypatch.chdir(tmp_path)
    first, *others = blocks(DOCS / "boosting.md", "python")
    (block,) = [code for code in others if f"from {library} import" in code]
    names = {}
    for code in (first, block):
        exec(compile(code, "boosting.md", "exec"), names)
    given, asked = names["trees"].fit(names["X"], names["y"]), names["review"].train(names["trees"])
    test = names["X_test"], names["y_test"]
    assert asked.score(*test) > given.score(*test) + 0.1


def test_the_tables_of_the_readme_are_those_of_the_results(tmp_path):
    readme = pytest.importorskip("floral_bench.reporting.readme")
    text = (ROOT / "README.md").read_text("utf-8")
    (tmp_path / "README.md").write_text(text.replace("0.", "1."), encoding="utf-8")
    readme.write(tmp_path / "README.md", DOCS / "results")
    shown, again = (t.split(readme.BEGIN)[1].split(readme.END)[0] for t in (text, (tmp_path / "README.md").read_text()))
    assert shown == again == readme.render(DOCS / "results"), "python -m floral_bench.reporting.readme"


def test_a_release_has_a_readme_whose_links_work_on_other_sites(tmp_path):
    """The step of the workflow that makes pictures and links absolute, on a copy."""
    yaml = pytest.importorskip("yaml")
    steps = yaml.safe_load((ROOT / ".github" / "workflows" / "publish.yml").read_text("utf-8"))["jobs"]["build"][
        "steps"
    ]
    (step,) = [step["run"] for step in steps if "README.md" in step.get("run", "")]
    if subprocess.run(["sed", "--version"], capture_output=True, check=False).returncode:
        pytest.skip("not GNU sed, which the workflow has")
    (tmp_path / "README.md").write_bytes((ROOT / "README.md").read_bytes())
    place = {"GITHUB_SERVER_URL": "https://forge.example", "GITHUB_REPOSITORY": "us/it", "GITHUB_REF_NAME": "v1"}
    subprocess.run(["bash", "-ec", step], cwd=tmp_path, env=os.environ | place, check=True)
    made = (tmp_path / "README.md").read_text("utf-8")
    assert 'src="https://forge.example/us/it/raw/v1/docs/images/demo.png"' in made
    targets = re.findall(r"\]\(([^)]+)\)", made)
    assert len(targets) > 20
    assert all(target.startswith("https://") for target in targets)


def test_pages_have_the_tables_of_the_rows():
    card = pytest.importorskip("floral_bench.questions.card")
    from floral_bench.reporting.tables import markdown

    rows = pd.read_csv(DOCS / "results" / "answers" / "rows.csv.gz")
    assert (DOCS / "results" / "answers.md").read_text("utf-8").endswith(card.card_text(rows))
    assert markdown(card.cost_table(rows)).strip() in (DOCS / "cost.md").read_text("utf-8")


def commands():
    """Every shell command of the documents, once, in the order of reading; of README those inside its text, too."""
    found = {}
    for page in PAGES:
        if "results" in page.parts:
            continue
        inline = re.findall(r"`(floral \w+ [^`]+)`", page.read_text("utf-8")) if page.name == "README.md" else []
        for code in [*blocks(page, "bash", "console", "sh"), *inline]:
            for line in code.replace("\\\n", " ").splitlines():
                line = re.sub(r"\s+#.*", "", line.removeprefix("$ ")).strip()
                for part in filter(None, map(str.strip, line.split("&&"))):
                    found.setdefault(part, name_of(page))
    return found


# Added to commands that would run for long; as they stand they run in `make test-all`.
SHORTENED = {
    "floral bench moon --quick": "--methods svc-default,floral-default --reps 1",
    "floral bench --data my.csv --label y": "--methods svc-default,floral-default --reps 1",
}


@pytest.fixture
def folder(tmp_path):
    """A folder with the files that the documents' commands name, small."""
    folder = tmp_path
    rng = np.random.default_rng(0)
    n = 80
    truth = rng.integers(0, 2, n)
    table = pd.DataFrame(
        {
            "width": (truth * 2 + rng.normal(size=n)).round(3),
            "height": rng.normal(size=n).round(3),
            "colour": rng.choice(["red", "blue"], n),
            "y": np.where(truth, "yes", "no"),
        }
    )
    for name in ("my.csv", "in.csv"):
        table.to_csv(folder / name, index=False)
    table.drop(columns="y").to_csv(folder / "new.csv", index=False)
    first = pd.read_csv(sample_table(folder / "parts.csv", n_rows=80))["quality"][0]
    votes = [(task, person, table["y"][task]) for task in range(n) for person in ("ann", "bob", "cy")]
    pd.DataFrame(votes, columns=["task", "worker", "label"]).to_csv(folder / "votes.csv", index=False)
    _write_exports(folder, truth)
    (folder / "decisions.csv").write_text(f"row,id,given,decision,label\n0,p0000,{first},right,{first}\n")
    return folder


def _write_exports(folder, truth):
    """What annotation tools export, as docs/tables.md names it."""
    names = np.array(["bad", "good"])[truth]
    texts = [f"a {'fine' if t else 'poor'} thing {i}" for i, t in enumerate(truth)]

    def put(name, rows):
        (folder / name).write_text("\n".join(json.dumps(row) for row in rows) + "\n", encoding="utf-8")

    choice = [[{"from_name": "sentiment", "type": "choices", "value": {"choices": [name]}}] for name in names]
    voted = [[{"completed_by": person, "result": made} for person in (1, 2)] for made in choice]
    tasks = [
        {"id": i, "data": {"text": text, "length": len(text)}, "annotations": voted[i]} for i, text in enumerate(texts)
    ]
    (folder / "export.json").write_text(json.dumps(tasks), encoding="utf-8")
    put("all.jsonl", ({"id": i, "text": t, "label": [name]} for i, (t, name) in enumerate(zip(texts, names))))
    both = ({"id": i, "annotator": who, "label": [name]} for i, name in enumerate(names) for who in ("ann", "bob"))
    put("votes.jsonl", both)
    accepted = [{"_input_hash": i, "text": t, "accept": [name], "options": [{"id": "bad"}, {"id": "good"}]}
                for i, (t, name) in enumerate(zip(texts, names))]  # fmt: skip
    put("annotations.jsonl", (row | {"answer": "accept", "_annotator_id": "ann"} for row in accepted))
    binary = ({"text": t, "label": "good", "answer": "accept" if v else "reject"} for t, v in zip(texts, truth))
    put("binary.jsonl", binary)


@pytest.mark.parametrize("added", [SHORTENED, pytest.param({}, marks=pytest.mark.slow)], ids=["shortened", "whole"])
def test_every_command_runs(folder, monkeypatch, added):
    """One after the other, since later ones use what earlier ones wrote.

    The first runs as a reader would run it, the others in this process, which has imported everything already.
    """
    testing = pytest.importorskip("typer.testing")
    app, runner, found = make_app(), testing.CliRunner(), commands()
    assert len(found) >= 12
    assert set(added) <= set(found)
    failed, alone = [], True
    monkeypatch.chdir(folder)
    for command, page in found.items():
        if any(command.split(" #")[0].startswith(prefix) for prefix in NOT_RUN):
            continue
        words = shlex.split(f"{command} {added.get(command, '')}")
        if words[:2] == ["floral", "review"] and "--to" not in words:
            words.append("--finish")  # it would serve its page until it is stopped
        assert words[0] == "floral", f"{page}: who runs {command!r}? mark the block with <!-- not run: reason -->"
        if alone:
            words[0] = str(Path(sys.executable).with_name("floral"))
            done = subprocess.run(words, cwd=folder, capture_output=True, text=True)
            code, said, alone = done.returncode, done.stdout + done.stderr, False
        else:
            with warnings.catch_warnings():
                warnings.simplefilter("default")  # a command warns its user; only tests make that an error
                done = runner.invoke(app, words[1:])
            code, said = done.exit_code, f"{done.output}{done.exception or ''}"
        if code:
            failed.append(f"{page}: {command}\n{said[-2000:]}")
    assert not failed, "\n\n".join(failed)
    for written in ("model.skops", "predictions.csv", "report/page.html", "poisoned.csv", "runs/moon-quick"):
        assert (folder / written).exists(), f"no command of the documents wrote {written}"


def options_of(words):
    """The subcommand of `floral` that begins with these words, and its options."""
    command, place, named = pytest.importorskip("typer.main").get_command(make_app()), 0, []
    while place < len(words) and words[place] in getattr(command, "commands", ()):
        command, named, place = command.commands[words[place]], [*named, words[place]], place + 1
    command = getattr(command, "commands", {}).get("run", command)  # floral audit FILE is floral audit run FILE
    return named, {flag for param in command.params for flag in param.opts + param.secondary_opts} | {"--help"}


def test_options_of_commands_in_running_text_exist():
    """Commands within sentences are too short to run as they stand; their words must still be right."""
    seen = 0
    for page in PAGES:
        if "results" in page.parts or page.name == "CHANGELOG.md":  # that one names commands which are gone
            continue
        for line in re.findall(r"`floral ([a-z][^`]*)`", BLOCK.sub("", page.read_text(encoding="utf-8"))):
            words = shlex.split(line.replace("\n", " "))
            named, known = options_of(words)
            assert named, f"{name_of(page)}: {line}"
            unknown = {word.split("=")[0] for word in words if word.startswith("-")} - known
            assert not unknown, f"{name_of(page)}: {line}: {unknown}"
            seen += 1
    assert seen > 10


GUIDES = [ROOT / "README.md", *sorted(DOCS.glob("*.md")), *sorted((DOCS / "howto").glob("*.md"))]
RESULTS = [page for page in sorted((DOCS / "results").glob("*.md")) if page.stem not in ("index", "looked-at")]
LEFT_OUT = re.compile(r"^```.*?^```|<!--.*?-->|^\$\$.*?^\$\$|^ {4}.*?$|^:::.*?$|^[#|].*?$|^:link.*?$", re.S | re.M)


def sentences(text):
    """The sentences of a page's prose: no code, formulas, tables, headings. A list item ends a sentence."""
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", LEFT_OUT.sub("\n\n", text))
    for part in re.split(r"\n\s*\n|\n(?=\s*(?:[-*]|\d+\.) )", text):
        yield from filter(None, re.split(r"(?<=[.!?])[*)\"]*\s+(?=[A-Z`*\"(])", " ".join(part.split())))


def length(sentence):
    return sum(any(letter.isalnum() for letter in word) for word in sentence.split())


def test_sentences_of_the_guides_are_short():
    """Nine in ten have at most 28 words; the message lists the longest."""
    found = [(length(said), page.name, said) for page in GUIDES for said in sentences(page.read_text("utf-8"))]
    found = [one for one in found if one[0] > 2]
    ninety = np.percentile([words for words, *_ in found], 90)
    longest = "\n".join(f"{words} {page}: {said}" for words, page, said in sorted(found, reverse=True)[:40])
    assert len(found) > 500
    assert ninety <= 28, f"{ninety} words\n{longest}"


def test_the_guides_and_results_stay_short():
    guides = [page for page in GUIDES[1:] if page.name not in ("cli.md", "changelog.md")]  # these are generated
    for pages, most, words in ((guides, 24, 20_000), (RESULTS, 12, 15_000)):
        assert len(pages) <= most
        assert sum(len(page.read_text("utf-8").split()) for page in pages) <= words  # code and tables, too
    readme = GUIDES[0].read_text("utf-8").splitlines()
    assert len(readme) <= 130
    assert max(map(len, readme)) <= 120


# Words of this project that the field does not use, or uses otherwise; and American spellings.
AVOIDED = r"""told the level|told nothing|read once|mirror image|camps?|turned over|bor(?:ne|n|e)? out|holes
stretch|standardiz\w*|normaliz\w*|summariz\w*|recogniz\w*|\bcolors?\b|labeled|labeling"""


def test_the_guides_use_the_words_of_the_field():
    words = re.compile(rf"\b(?:{AVOIDED.replace(chr(10), '|')})\b", re.I)
    for page in GUIDES + RESULTS:
        text = re.sub(r"```.*?```|`[^`]*`|^:::\{index\}.*?$", "", page.read_text("utf-8"), flags=re.S | re.M)
        assert not words.findall(text), name_of(page)


def test_blocks_that_are_not_run_give_a_reason():
    for page in PAGES:
        for reason in re.findall(r"<!-- not run:?(.*?)-->", page.read_text(encoding="utf-8"), re.S):
            assert len(reason.strip()) > 5, name_of(page)


def links():
    for page in PAGES:
        text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.S)
        for target in re.findall(r"\]\(([^)\s]+)\)", text):
            yield page, target


def test_links_between_files_lead_somewhere():
    seen = 0
    for page, target in links():
        if "://" in target or target.startswith(("#", "mailto:")):
            continue
        path = (page.parent / target.split("#")[0]).resolve()
        built = BUILT & set(path.parts)  # pages of the gallery exist once the site is built, and Sphinx checks them
        assert path.exists() or built, f"{name_of(page)} -> {target}"
        if "#" in target and path.suffix == ".md":
            heads = re.findall(r"^#+ (.*)$", path.read_text("utf-8"), re.M)
            anchors = {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}
            assert target.split("#")[1] in anchors, f"{name_of(page)} -> {target}"
        seen += 1
    assert seen > 50


def test_links_to_other_sites_are_well_formed_and_few():
    """There is no network in the tests: addresses are checked by form, and listed here so that each was looked at."""
    hosts = {urlparse(target).netloc for _, target in links() if "://" in target}
    assert all(urlparse(target).scheme == "https" for _, target in links() if "://" in target)
    assert hosts <= {"skops.readthedocs.io", "medium.com"}, hosts


def reference_names():
    """Full names in docs/api: entries of autosummary and py:data."""
    names = set()
    for page in DOCS.glob("api/*.rst"):
        module, inside = "", False
        for line in page.read_text(encoding="utf-8").splitlines():
            if match := re.match(r"\.\. currentmodule:: (\S+)", line):
                module = match[1]
            elif match := re.match(r"\.\. py:data:: (\S+)", line):
                names.add(match[1])
            elif line.startswith(".. autosummary"):
                inside = True
            elif line and not line.startswith(" "):
                inside = False
            elif inside and re.fullmatch(r"   \w+", line):
                names.add(f"{module}.{line.strip()}")
    return names


def test_every_public_name_is_in_the_reference():
    listed = reference_names()
    short = {name.rsplit(".", 1)[1] for name in listed if name.count(".") == 1}
    missing = set(floral_learn.__all__) - {"__version__"} - short
    assert not missing, f"add to docs/api: {sorted(missing)}"
    for room in ("attacks", "audit", "datasets"):
        module = importlib.import_module(f"floral_learn.{room}")
        here = {n.rsplit(".", 1)[1] for n in listed if n.startswith((f"floral_learn.{room}.", "floral_learn."))}
        assert set(module.__all__) <= here, f"{room}: {sorted(set(module.__all__) - here)}"


def test_the_reference_names_nothing_that_does_not_exist():
    for name in reference_names():
        module, attribute = name.rsplit(".", 1)
        assert hasattr(importlib.import_module(module), attribute), name


def test_the_citation_names_the_paper_and_this_version():
    yaml = pytest.importorskip("yaml")
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert citation["version"] == floral_learn.__version__
    paper = citation["preferred-citation"]
    assert [author["family-names"] for author in paper["authors"]] == ["Bal", "Cevher", "Muehlebach"]
    assert paper["year"] == 2025


def test_the_workflow_runs_make_test_on_every_python_that_the_package_claims():
    yaml = pytest.importorskip("yaml")
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "test.yml").read_text(encoding="utf-8"))
    claimed = re.findall(r"Python :: (3\.\d+)", (ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    jobs = workflow["jobs"]
    # The workflow may try a newer Python than those on which the tests have been seen to pass.
    assert jobs["test"]["strategy"]["matrix"]["python"][: len(claimed)] == claimed
    oldest = re.search(r"scikit-learn>=(\d+\.\d+)", (ROOT / "pyproject.toml").read_text(encoding="utf-8"))[1]
    steps = [step.get("run", "") for step in jobs["scikit-learn"]["steps"]]
    versions = [entry["scikit-learn"] for entry in jobs["scikit-learn"]["strategy"]["matrix"]["include"]]
    assert f"=={oldest}.*" in versions
    assert len(set(versions)) > 1  # the newest, too
    assert steps[-1] == "make test"
    assert {"windows-latest", "macos-latest"} <= set(jobs["other-systems"]["strategy"]["matrix"]["system"])
    for job, command in (("test", "make test"), ("docs", "make docs"), ("all", "make test-all")):
        assert any(step.get("run") == command for step in jobs[job]["steps"]), job
