"""``floral evidence``: what a model or review file knows about the labels behind it, and what nobody knows."""

from __future__ import annotations

import csv
import json
from html import escape
from pathlib import Path
from typing import Any

import typer

from floral_learn.app.options import check_out_file
from floral_learn.app.terminal import one_line, say
from floral_learn.base import TableError
from floral_learn.base.files import sha256, write_atomically

Section = tuple[str, list[tuple[str, str]]]

# The public lists of threats that such a page is asked for. It bears on them and settles none.
THREATS = [
    ("OWASP Machine Learning Security Top Ten", "ML02:2023 Data Poisoning Attack"),
    ("OWASP Top 10 for LLM Applications", "LLM04:2025 Data and Model Poisoning"),
    ("MITRE ATLAS", "AML.T0020 Poison Training Data"),
]
MOST_BYTES = 2**22  # of a file in a folder that --with names
MOST_CURVES = 30
STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:46rem;margin:2rem auto;padding:0 1rem;color:#222}"
    "table{border-collapse:collapse;width:100%;margin-bottom:1.5rem}td{border-top:1px solid #ddd;padding:.35rem .5rem;"
    "vertical-align:top;overflow-wrap:anywhere}td:first-child{width:40%;color:#555}h2{font-size:1.1rem}"
    "@media(prefers-color-scheme:dark){body{background:#181818;color:#ddd}td{border-color:#444}td:first-child{color:#aaa}}"
)


def certificate_facts(source: Path, found: Any, flips: list[str]) -> bytes:
    """What `floral certify` leaves for this command: its data by digest, and the share that survives."""
    from floral_learn.app.certify_page import survival

    digest = sha256(source) if source.is_file() else ""
    facts = {
        "data": {"file": source.name, "SHA-256": digest},
        "labels": int(found.n_labels),
        "rows": len(found.flips),
        "survive": survival(found.flips, found.n_labels),
        "exact": bool(found.exact),
        "flips": flips,
        "assumed": {name: str(value) for name, value in found.assumed.items()},
    }
    return (json.dumps(facts, indent=1, ensure_ascii=False) + "\n").encode()


def register(app: typer.Typer) -> None:
    """Add the command to ``app``."""
    app.command(name="evidence")(one_line("floral evidence")(evidence))


def evidence(
    source: Path = typer.Argument(..., metavar="FILE", help="model.skops, or a review that LabelReview.save wrote"),
    out: Path | None = typer.Option(None, "--out", "-o", help="also write it: .html a page, .md a model card of skops"),
    made: list[Path] = typer.Option(
        [], "--with", help="a folder of `floral certify`, or of a run of `floral bench --data` (repeatable)"
    ),
    max_bytes: int = typer.Option(2**30, min=1, help="most bytes that FILE may unpack to"),
) -> None:
    """Say how the labels behind a model were checked, by whom and drawn how, and what is not known."""
    if out is not None and out.suffix.lower() not in (".html", ".md"):
        raise TableError(f"--out {out} must end in .html (a page) or .md (a model card)")
    if out is not None:
        check_out_file(out, source)
    model, facts = read_facts(source, max_bytes)
    for folder in made:
        facts = {**facts, **read_folder(folder)}
    try:
        sections = describe(source, model, facts)
    except (AttributeError, IndexError, KeyError, TypeError, ValueError):  # the file's author may write anything there
        raise TableError(f"{source}: what is stored in it about its labels cannot be read") from None
    for title, lines in sections:
        say(title)
        for name, value in lines:
            say(f"  {name}: {value}" if name else f"  {value}")
    if out is not None:
        write_atomically(out, page(source.name, sections) if out.suffix.lower() == ".html" else card(model, sections))
        say(f"wrote {out}")


def read_facts(path: Path, max_bytes: int) -> tuple[Any, dict[str, Any]]:
    """The model (None for a review file) and the evidence that is stored with it."""
    from floral_learn import LabelReview, load
    from floral_learn.base.model_files import ModelFileError

    try:
        model = load(path, max_bytes=max_bytes)
    except ModelFileError as error:
        if "review" not in str(error):
            raise
        from floral_learn.review.evidence import review_evidence

        return None, {"review": review_evidence(LabelReview.load(path))}
    found = getattr(model, "evidence_", {})
    return model, found if isinstance(found, dict) else {}


def read_folder(folder: Path) -> dict[str, Any]:
    """The certificate that `floral certify` left in a folder, or the attack curves of `floral bench --data`."""
    if (folder / "certificate.json").is_file():
        return {"certificate": _json(folder / "certificate.json")}
    if not (folder / "run.json").is_file() or not (folder / "rows.csv").is_file():
        raise TableError(
            f"--with {folder}: neither certificate.json of floral certify nor a run of floral bench --data"
        )
    try:
        run = _json(folder / "run.json")
        digests = {value for data in run["suite"]["data"] for key, value in data["params"] if key == "sha256"}
        curves: dict[str, list[str]] = {}
        for row in csv.DictReader(_text(folder / "rows.csv").splitlines()):
            if row["metric"] == "accuracy" and row["statistic"] == "final":
                curve = curves.setdefault(f"{row['method']}, {row['attack']}", [])
                curve.append(f"{float(row['level']):g} %: {float(row['mean']):.3f}")
        title, date = str(run["suite"]["title"]), str(run["environment"]["date"])[:10]
    except (AttributeError, KeyError, TypeError, ValueError, csv.Error):
        raise TableError(f"--with {folder}: its run.json or rows.csv cannot be read") from None
    about = {"data": {"file": title, "SHA-256": digests.pop() if len(digests) == 1 else ""}, "made": date}
    return {"attacks": {**about, "curves": {name: ", ".join(points) for name, points in curves.items()}}}


def _text(path: Path) -> str:
    try:
        if path.stat().st_size > MOST_BYTES:
            raise TableError(f"{path} is larger than {MOST_BYTES // 2**20} MiB")
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeError) as error:
        raise TableError(f"cannot read {path}: {getattr(error, 'strerror', None) or error}") from None


def _json(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(_text(path))
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise TableError(f"{path} is not a JSON object")
    return found


def describe(path: Path, model: Any, facts: dict[str, Any]) -> list[Section]:
    """Everything that is known, in sections of (name, value), and a last one of what is not."""
    from floral_learn import __version__

    file = [("file", path.name), ("SHA-256", sha256(path))]
    file += [(name, str(facts[name])) for name in ("written", "versions", "command") if name in facts]
    sections: list[Section] = [("File", [*file, ("read by", f"floral-learn {__version__}")])]
    if model is not None:
        sections.append(("Model", _model_lines(model)))
    data = facts.get("data", {})
    if data:
        sections.append(("Data", [(str(name), str(value)) for name, value in data.items()]))
    sections.append(("Labels that a person checked", _review_lines(facts.get("review"))))
    if measured := facts.get("measured"):
        sections.append(("Measured", [(str(name), str(value)) for name, value in measured.items()]))
    if attacks := facts.get("attacks"):
        sections.append(("Accuracy when training labels are attacked", _attack_lines(attacks, data)))
    if certificate := facts.get("certificate"):
        sections.append(("Certificate", _certificate_lines(certificate, data)))
    sections.append(("Not known", [("", line) for line in unknown(model, facts)]))
    about = "it bears on these entries (training labels only: inputs, models from elsewhere and prompts are outside)"
    sections.append(("Threats that this is evidence on", [("", about), *THREATS]))
    return sections


def _model_lines(model: Any) -> list[tuple[str, str]]:
    last = model[-1] if hasattr(model, "steps") else model
    lines = [("kind", " > ".join(type(step).__name__ for _, step in getattr(model, "steps", [("", model)])))]
    if hasattr(last, "classes_"):
        classes = [str(name) for name in last.classes_.tolist()]
        lines.append(("classes", ", ".join(classes[:12]) + (", ..." if len(classes) > 12 else "")))
    for name, words in (("budget_", "labels that its attacker may choose from"), ("n_features_in_", "numbers per row")):
        if hasattr(last, name):
            lines.append((words, str(getattr(last, name))))
    if hasattr(last, "certified_flips"):
        lines.append(("certificate", "certified_flips(X) says how many flipped labels each prediction survives"))
    return lines


def _review_lines(review: dict[str, Any] | None) -> list[tuple[str, str]]:
    if not review:
        return [("", "no answers are stored with this file")]
    twice = review["drawn at random"] + review["chosen by the model"] > review["checked"]
    both = ", some of which come in the random order too" if twice else ""
    people = ", ".join(f"{name} ({count})" for name, count in review["reviewers"].items())
    lines = [
        ("rows", f"{review['rows']:,}; {review['checked']:,} checked"),
        ("by", people or "nobody yet"),
        ("drawn at random, without a gap", f"{review['drawn at random']:,}, {review['wrong among the drawn']:,} wrong"),
        ("chosen by the model", f"{review['chosen by the model']:,}{both}"),
        (
            "labels changed",
            f"{review['changed by answers']:,} by answers, {review['changed by the model']:,} by the model",
        ),
    ]
    if review["drawn at random"]:
        bound = f"{100 * review['guaranteed low']:.1f} % to {100 * review['guaranteed high']:.1f} % of the given labels"
        lines.append(
            ("wrong, guaranteed", f"{bound}, with {100 * review['confidence']:.0f} % confidence at any moment")
        )
    if not review["guarantee valid"]:
        lines.append(("", "a seed made the order of rows predictable: the guarantee is void against who knows it"))
    return lines


def _same_data(made: dict[str, Any], data: dict[str, Any]) -> str:
    """Whether something was made with the data that the model was trained on, as far as digests say."""
    one, other = made["data"].get("SHA-256"), data.get("SHA-256")
    if not one or not other:
        return f"{made['data']['file']}; whether it is the model's data is not known"
    return f"{made['data']['file']}, " + ("the model's own data" if one == other else "not the model's data")


def _attack_lines(attacks: dict[str, Any], data: dict[str, Any]) -> list[tuple[str, str]]:
    curves = dict(attacks["curves"])
    lines = [("data", _same_data(attacks, data)), ("made", str(attacks.get("made", "not known")))]
    lines.append(("", "share of training labels flipped: accuracy on held-out rows of models trained for this test"))
    lines += [(str(name), str(curve)) for name, curve in list(curves.items())[:MOST_CURVES]]
    return lines + ([("", f"and {len(curves) - MOST_CURVES} more")] if len(curves) > MOST_CURVES else [])


def _certificate_lines(found: dict[str, Any], data: dict[str, Any]) -> list[tuple[str, str]]:
    lines = [("data", _same_data(found, data)), ("of", "a kernel ridge regression on this data, not of the model")]
    lines += [
        (f"survive {count:,} wrong of {found['labels']:,}", f"{100 * share:.0f} % of {found['rows']:,} predictions")
        for count, share in found["survive"]
    ]
    lines.append(("exact", "yes" if found["exact"] else "no, a lower bound"))
    if found["flips"]:
        lines.append(("only these labels can be wrong", ", ".join(map(str, found["flips"]))))
    return lines + [(f"assumed {name}", str(value)) for name, value in found["assumed"].items()]


def unknown(model: Any, facts: dict[str, Any]) -> list[str]:
    """What this file does not say, in sentences."""
    review, lines = facts.get("review"), []
    if not review:
        lines.append("How many labels are wrong: nobody checked labels drawn at random (floral review does).")
    elif not review["drawn at random"]:
        lines.append("How many labels are wrong: no answer is about a row drawn at random.")
    else:
        lines.append("Whether the reviewers were right: the interval is about labels that they would change.")
    if model is not None and "data" not in facts:
        lines.append("Which rows it was trained on: the file was not written by floral train or floral review.")
    if not facts.get("attacks"):
        lines.append("How such a model fares under attack: floral bench --data tells, and --with takes it in here.")
    if model is not None and not hasattr(model[-1] if hasattr(model, "steps") else model, "certified_flips"):
        lines.append("How many flipped labels a prediction of this model survives: its kind has no certificate.")
    if not facts.get("certificate"):
        lines.append("What a certified model on this data survives: floral certify tells, and --with takes it in here.")
    lines.append("Whether inputs were tampered with, and whether the file is the author's: a digest is no signature.")
    return lines


def page(title: str, sections: list[Section]) -> str:
    """A page without scripts; every text is escaped."""
    parts = []
    for heading, lines in sections:
        rows = "".join(
            f"<tr><td>{escape(name)}</td><td>{escape(value)}</td></tr>" if name else
            f"<tr><td colspan=2>{escape(value)}</td></tr>"
            for name, value in lines
        )  # fmt: skip
        parts.append(f"<h2>{escape(heading)}</h2><table>{rows}</table>")
    name = f"Evidence on {title}"
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{escape(name)}</title>'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<style>{STYLE}</style><h1>{escape(name)}</h1>{''.join(parts)}</html>\n"
    )


def card(model: Any, sections: list[Section]) -> str:
    """A model card as skops writes it."""
    from skops.card import Card

    made = Card(model, template=None)
    for heading, lines in sections:
        text = "\n".join(
            f"- {_plain(name)}: {_plain(value)}" if name else f"- {_plain(value)}" for name, value in lines
        )
        made.add(folded=False, **{heading: text})
    return str(made.render())


def _plain(text: str) -> str:
    """Text of a file as Markdown shows it, not as markup."""
    return "".join(f"\\{sign}" if sign in "\\`*_{}[]<>#|!" else sign for sign in " ".join(text.split()))
