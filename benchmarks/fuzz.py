"""Attack the commands, the files and the fits, and count what happened: the table of docs/results/reliability.md.

    python benchmarks/fuzz.py                 everything, more than 20,000 attacks, in two processes
    python benchmarks/fuzz.py --only models --scale 0.1
    python benchmarks/fuzz.py --page docs/results/reliability.md     also puts the table into the page

Every part counts the attempts, how many were refused in one line (or with the one exception that stands for it), how
many succeeded as if nothing were wrong, and how many failed: a traceback, noise on the terminal, a half file, a label
among the features, code that ran. The last column must be 0.
"""

import argparse
import contextlib
import csv
import io
import json
import multiprocessing
import os
import platform
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import zipfile
from collections import Counter
from concurrent.futures import ProcessPoolExecutor, as_completed
from importlib import metadata
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
import fuzz_cases as cases
import fuzz_doors
import fuzz_files
from fuzz_cases import Count, invoke

from floral_bench.reporting.making import begin
from floral_learn import load
from floral_learn.app.tables import read_table
from floral_learn.base import ModelFileError, TableEncoder, TableError

CALL = [sys.executable, "-c", "from floral_learn.app import main; main()"]


def counted(count, arguments, what, folder=None):
    """Run a command and count how it ended; files in `folder` that it left half done are failures too."""
    code, _, _, problem = invoke(arguments)
    left = [path.name for path in folder.iterdir() if path.name.startswith(".")] if folder and folder.is_dir() else []
    if problem or left:
        count.fail(f"{what}: {problem or 'left ' + ', '.join(left)}")
    elif code == 0:
        count.done += 1
    else:
        count.refused += 1


def commands_for(source, folder, model, number):
    """One call of every command that reads a table."""
    few = ("--methods", "svm-libsvm", "--reps", "1", "--levels", "0", "--attack", "random")
    calls = {
        "train": ("train", source, "-l", "y", "-o", folder / "m.skops", "-m", "svm", "--text-encoder", "tfidf"),
        "predict": ("predict", model, source, "-o", folder / "p.csv"),
        "poison": ("poison", source, "-l", "y", "-o", folder / f"out{source.suffix}", "-a", "random"),
        "audit": ("audit", source, "-l", "y", "-o", folder / "report", "--text-encoder", "tfidf"),
    }
    if number % 4 == 0:
        calls["poison by features"] = (*calls["poison"][:-1], "farthest")
        calls["review"] = ("review", source, "-l", "y", "-o", folder / "review", "--finish", "--no-browser")
        who = ("--task", "id", "--worker", "colour", "--label", "y")
        calls["crowd"] = ("crowd", source, *who, "-o", folder / "crowd")
    if number % 10 == 0:
        calls["bench"] = ("bench", "--data", source, "--label", "y", "--out", folder / "runs", *few)
    return calls


def a_model(folder):
    """A model file that `predict` can use."""
    (folder / "good.csv").write_bytes(cases.good_table(cases.seeded(0)))
    code, _, errors, _ = invoke(("train", folder / "good.csv", "-l", "y", "-o", folder / "model.skops", "-m", "svm"))
    assert code == 0, errors
    return folder / "model.skops"


def tables(rng, scale, work):
    """Malformed tables, and good ones with bytes changed, through every command."""
    count, model = Count(), a_model(work)
    named = list(cases.malformed_tables(rng).items())
    good = cases.good_table(rng)
    named += [(f"mutation {i}", (".csv", cases.mutated(rng, good))) for i in range(int(40 * scale))]
    if scale < 1:
        named = [named[i] for i in sorted(rng.sample(range(len(named)), max(8, int(len(named) * scale))))]
    for number, (name, (suffix, content)) in enumerate(named):
        folder = work / f"t{number}"
        folder.mkdir()
        source = folder / f"data{suffix}"
        source.write_bytes(content)
        for command, arguments in commands_for(source, folder, model, number).items():
            counted(count, arguments, f"{command} of {name}", folder)
            if source.read_bytes() != content:
                count.fail(f"{command} of {name}: the data file changed")
        shutil.rmtree(folder)
    return {"malformed tables x commands": count}


def names(rng, scale, work):
    """Strange names: whatever the label is called, the features are the same when the label is shuffled."""
    count = Count()
    for number in range(max(20, int(500 * scale))):
        suffix, titles, columns, place = cases.strange_table(rng)
        path = work / f"strange{suffix}"
        path.write_bytes(cases.written(suffix, titles, columns))
        label = titles[place].replace("\0", "0") if suffix == ".parquet" else titles[place].strip()
        what = f"table {number} ({suffix}, label {label[:20]!r} of {[t[:12] for t in titles]})"
        try:
            table = read_table(path, label=label)
            encoder = TableEncoder(text_encoder="tfidf").fit(table.features)
        except TableError:
            count.refused += 1
            continue
        except Exception as error:
            count.fail(f"{what}: {error!r}")
            continue
        shuffled = [list(column) for column in columns]
        rng.shuffle(shuffled[place])
        path.write_bytes(cases.written(suffix, titles, shuffled))
        again = read_table(path, label=label).features
        leaked = (
            any("Lqz" in name for name in encoder.get_feature_names_out())
            or table.features.isin(["Lqz0", "Lqz1"]).any().any()
        )
        trained = "" if number % 5 else _trained_leak(path, label, work)
        if leaked or trained or not again.equals(table.features):
            count.fail(f"{what}: the label is among the features {trained}")
        else:
            count.done += 1
    return {"tables with strange names: is the label a feature?": count}


def _trained_leak(path, label, work):
    """What `floral train` took for features, where that is wrong."""
    code, _, errors, problem = invoke(
        ("train", path, f"--label={label}", "-o", work / "n.skops", "-m", "svm", "--no-held-out")
    )
    if problem:
        return problem
    if code:
        return "" if "usable" in errors or "class" in errors else errors
    made = load(work / "n.skops").named_steps["columns"].get_feature_names_out()
    return "in the model" if any("Lqz" in name for name in made) else ""


def models(rng, scale, work):
    """Damaged model files must be refused or predict the same; rewritten ones must be refused or load."""
    path, good = work / "mutant.skops", a_model(work)
    raw, frame = good.read_bytes(), read_table(work / "good.csv", label="y").features
    expected = load(good).decision_function(frame)
    accidents, changes = Count(), Count()
    for number in range(max(30, int(2500 * scale))):
        path.write_bytes(cases.mutated(rng, raw))
        try:
            same = np.array_equal(load(path).decision_function(frame), expected)
        except ModelFileError:
            accidents.refused += 1
        except Exception as error:
            accidents.fail(f"mutation {number}: {error!r}")
        else:
            accidents.done += same
            if not same:
                accidents.fail(f"mutation {number}: other predictions")

    with zipfile.ZipFile(good) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    for number in range(max(30, int(150 * scale))):
        stream = io.BytesIO()
        with zipfile.ZipFile(stream, "w") as archive:
            for name, content in files.items():
                changed = cases.changed_json(rng, content.decode()).encode() if name == "schema.json" else content
                archive.writestr(name, changed)
        path.write_bytes(stream.getvalue())
        counted(changes, ("predict", path, work / "good.csv", "-o", work / "p.csv"), f"schema {number}")
    return {"model files, bytes changed": accidents, "model files, schema rewritten, through predict": changes}


def runs(rng, scale, work):
    """Damaged run folders and stores: report and list."""
    count = Count()
    start = ("bench", "moon", "--methods", "svm-libsvm", "--reps", "1", "--levels", "0", "--out", work / "runs")
    code, _, errors, _ = invoke(start)
    assert code == 0, errors
    for number in range(max(5, int(20 * scale))):
        folder = work / "damaged"
        shutil.copytree(work / "runs", folder)
        if number % 2:
            note = folder / "moon" / "run.json"
            note.write_text(cases.changed_json(rng, note.read_text()), errors="replace")
        else:
            with contextlib.suppress(Exception):
                cases.changed_store(rng, folder / "store.sqlite")
        counted(count, ("report", folder / "moon"), f"report {number}")
        counted(count, ("bench", "--list", "--out", folder), f"list {number}")
        shutil.rmtree(folder)
    return {"damaged run folders and stores": count}


def formulas(rng, scale, work):
    """Cells of our own CSV files that a spreadsheet would run."""
    count = Count()
    evil = ["=cmd|'/C calc'!A1", "+1+1", "-2+3", "@SUM(A1)", "\t=1"]
    rows = [[f"{rng.gauss(3 * (i % 2), 1):.3f}", evil[i % 5] + str(i), evil[i % 2], evil[2 + i % 2]] for i in range(60)]
    (work / "f.csv").write_bytes(cases.csv_of(["x", "name", "who", "y"], list(zip(*rows, strict=True))))
    source = work / "f.csv"
    calls = (
        ("train", source, "-l", "y", "-o", work / "f.skops", "-m", "svm", "--drop", "name", "--drop", "who"),
        ("predict", work / "f.skops", source, "-o", work / "out.csv", "--id", "name"),
        ("poison", source, "-l", "y", "-o", work / "bad.csv", "-a", "random"),
        ("audit", source, "-l", "y", "-o", work / "rep", "--id", "name", "--group", "who"),
    )
    for arguments in calls:
        code, _, errors, _ = invoke(arguments)
        assert code == 0, errors
    for path in (
        work / "out.csv",
        work / "bad.csv.flips.csv",
        work / "rep" / "issues.csv",
        work / "rep" / "groups.csv",
    ):
        for row in csv.reader(io.StringIO(path.read_text(), newline="")):
            for cell in row:
                runs_it = cell[:1] in "=+-@\t\r" and cell[:1] and not _is_number(cell)
                count.fail(f"{path.name}: {cell}") if runs_it else None
                count.done += not runs_it
    back = read_table(work / "out.csv", label="prediction")
    count.done += set(back.labels) <= {row[3] for row in rows}
    return {"cells of our CSV files": count}


def _is_number(cell):
    try:
        float(cell)
    except ValueError:
        return False
    return True


def disk(rng, scale, work):
    """A full disk at the end of every command: one line that names the file, and no half file."""
    count, model = Count(), a_model(work)
    source, real = work / "good.csv", os.fsync

    def full(_):
        raise OSError(28, "No space left on device")

    folder = work / "full"
    folder.mkdir()
    for arguments in commands_for(source, folder, model, 0).values():
        if arguments[0] == "review":
            continue  # its answers are in SQLite, which syncs by itself
        os.fsync = full
        try:
            code, _, errors, problem = invoke(arguments)
        finally:
            os.fsync = real
        left = [p for p in folder.rglob("*") if p.is_file() and "store.sqlite" not in p.name]
        if problem or code == 0 or left or "No space left" not in errors or "cannot write" not in errors:
            count.fail(f"{arguments[0]}: {problem or errors or left}")
        else:
            count.refused += 1
    return {"full disk": count}


def interrupts(rng, scale, work):
    """Ctrl-C and kill -9 at random moments of real processes."""
    stopped, killed, model = Count(), Count(), a_model(work)
    big = work / "big.csv"
    big.write_bytes(cases.good_table(rng, 3000))
    for number in range(max(3, int(10 * scale))):
        for how, count in ((signal.SIGINT, stopped), (signal.SIGKILL, killed)):
            folder = work / f"i{number}"
            folder.mkdir()
            choice = list(commands_for(big, folder, model, 0).items())
            command, arguments = choice[number % len(choice)]
            process = subprocess.Popen(
                [*CALL, *map(str, arguments)],
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                # A shell's background job ignores Ctrl-C, and would hand that on to its children.
                preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
            )
            time.sleep(rng.uniform(0.3, 8.0))
            process.send_signal(how)
            _, errors = process.communicate(timeout=120)
            half = [
                p
                for p in folder.rglob("*")
                if p.suffix in (".skops", ".csv", ".html") and not p.name.startswith(".") and p.stat().st_size == 0
            ]
            early = (
                process.returncode in (-signal.SIGINT, 130, 1)
                and "Traceback" in errors
                and "floral_learn.app" not in errors
            )
            if ("Traceback" in errors and not early) or half:
                count.fail(f"{command}: {errors[-300:] or half}")
            elif process.returncode == 0:
                count.done += 1
            else:
                count.refused += 1
            shutil.rmtree(folder)
    return {"Ctrl-C": stopped, "kill -9": killed}


def pages(rng, scale, work):
    """Pages made of hostile rows, in Chromium: does any script of theirs run?"""
    count = Count()
    browser = shutil.which("chromium") or shutil.which("chromium-browser")
    if browser is None:
        return {}
    hostile = [
        "<script>document.title='RAN'</script>",
        "<img src=x onerror=\"document.title='RAN'\">",
        "</script><script>document.title='RAN'</script>",
        "javascript:document.title='RAN'",
        "\u2028<svg onload=document.title='RAN'>",
        "{{7*7}}",
        "--><script>document.title='RAN'</script>",
    ]
    rows = [
        [f"{rng.gauss(3 * (i % 2), 1):.3f}", hostile[i % 7], hostile[(i + 3) % 7], hostile[i % 2]] for i in range(70)
    ]
    (work / "h.csv").write_bytes(cases.csv_of(["x", hostile[1], "who", "y"], list(zip(*rows, strict=True))))
    code, _, errors, _ = invoke(
        ("audit", work / "h.csv", "-l", "y", "-o", work / "rep", "--group", "who", "--id", hostile[1])
    )
    assert code == 0, errors
    runs_folder = work / "runs"
    few = ("--methods", "svm-libsvm", "--reps", "1", "--levels", "0", "--out", runs_folder)
    assert invoke(("bench", "moon", *few))[0] == 0
    note = runs_folder / "moon" / "run.json"
    content = json.loads(note.read_text())
    content["suite"] |= {"title": hostile[0], "notes": hostile}
    content["command"] = hostile[1]
    note.write_text(json.dumps(content))
    assert invoke(("report", runs_folder / "moon"))[0] == 0
    table = (work / "h.csv", "-l", "y", "--id", hostile[1])
    assert invoke(("certify", *table, "-o", work / "cert"))[0] == 0
    assert invoke(("review", *table, "-o", work / "review", "--finish", "--no-browser"))[0] == 0
    shown_with = ("--with", work / "cert", "-o", work / "evidence.html")
    assert invoke(("evidence", work / "review" / "model.skops", *shown_with))[0] == 0
    made = [work / "rep" / "page.html", runs_folder / "moon" / "report.html", work / "cert" / "page.html"]
    for page in (*made, work / "review" / "report.html", work / "evidence.html"):
        flags = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
        flags += [
            "--disable-component-update",
            "--disable-sync",
            f"--user-data-dir={work / 'profile'}",
            "--virtual-time-budget=4000",
        ]
        shown = subprocess.run(
            [browser, *flags, "--dump-dom", page.as_uri()], capture_output=True, text=True, timeout=120, check=False
        ).stdout
        if "<title>RAN" in shown or "</html>" not in shown:
            count.fail(f"{page.name}: {shown[:200]}")
        else:
            count.done += 1
    return {"hostile pages in Chromium": count}


PARTS = {
    "tables": tables,
    "names": names,
    "models": models,
    "runs": runs,
    "formulas": formulas,
    "disk": disk,
    "interrupts": interrupts,
    "pages": pages,
    **fuzz_files.PARTS,
    **fuzz_doors.PARTS,
}


# The long parts first, so that two processes end at about the same time.
LONGEST = ("files", "tables", "interrupts", "models", "reviews", "checkpoints", "runs", "certificates", "workbooks")
# Byte changes of one file: at most half of all attacks.
BYTES = ("model files, bytes changed", "review files, bytes changed")


def one_part(name, scale, seed):
    """Title -> Count of one part, and the seconds that it took."""
    started = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="floral-fuzz-") as folder:
        try:
            made = PARTS[name](cases.seeded(f"{seed} {name}"), scale, Path(folder))
        except Exception:  # one part that cannot be run does not take the counts of the others with it
            made = {name: Count()}
            made[name].fail(f"the part ended: {traceback.format_exc()[-1500:]}")
    return made, time.perf_counter() - started


def run(only=tuple(PARTS), scale=1.0, seed=0, tell=lambda line: None, jobs=1):
    """Title -> Count of every part asked for, in the order of the parts."""
    order = [*(name for name in LONGEST if name in only), *(name for name in only if name not in LONGEST)]
    found = {}

    def ended(name, made, seconds):
        found[name] = made
        for title, count in made.items():
            tell(f"{title}: {count.tried} tried, {len(count.failures)} failed ({seconds:.0f} s)")

    if jobs == 1:
        for name in only:
            ended(name, *one_part(name, scale, seed))
    else:
        with ProcessPoolExecutor(jobs, mp_context=multiprocessing.get_context("spawn")) as pool:
            waiting = {pool.submit(one_part, name, scale, seed): name for name in order}
            for done in as_completed(waiting):
                ended(waiting[done], *done.result())
    return {title: count for name in only for title, count in found[name].items()}


def table(found):
    """The counts as Markdown."""
    lines = [
        "| attack | tried | refused in one line | done as if nothing were wrong | failed |",
        "|---|---:|---:|---:|---:|",
    ]
    rows = {title: (c.tried, c.refused, c.done, len(c.failures)) for title, c in found.items()}
    lines += ["| " + " | ".join([title, *(f"{n:,}" for n in row)]) + " |" for title, row in rows.items()]
    together = [f"**{sum(column):,}**" for column in zip(*rows.values(), strict=True)]
    return "\n".join([*lines, "| **together** | " + " | ".join(together) + " |"])


def heading(found, seconds, run):
    """When, where and at which commit the counts were made, in words."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    processor = sum(part.ru_utime + part.ru_stime for part in used)
    together = sum(count.tried for count in found.values())
    changed = sum(found[title].tried for title in BYTES if title in found)
    libraries = ", ".join(f"{name} {metadata.version(name)}" for name in ("scikit-learn", "skops", "pandas", "polars"))
    return (
        f"{run.heading()}. {together:,} attacks in {seconds / 60:.0f} minutes ({processor / 60:.0f} of processor), "
        f"{changed:,} of them byte changes of one file; Python {platform.python_version()}, {libraries}."
    )


def put_into(page, text):
    """Replace what stands between the two marks of the page."""
    before, _, rest = page.read_text(encoding="utf-8").partition("<!-- counts -->\n")
    _, _, after = rest.partition("<!-- end of counts -->")
    whole = f"{before}<!-- counts -->\n{text}\n\n<!-- end of counts -->{after}"
    page.write_text(whole, encoding="utf-8")


def main():
    """Print the table; exit with 1 where something failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="*", choices=PARTS, default=list(PARTS))
    parser.add_argument("--scale", type=float, default=1.0, help="share of the attempts")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    parser.add_argument("--page", type=Path, help="page whose table is replaced")
    chosen = parser.parse_args()
    started, making = time.perf_counter(), begin(trial=True)
    tell = lambda line: print(line, file=sys.stderr, flush=True)  # noqa: E731
    found = run(chosen.only, chosen.scale, chosen.seed, tell, chosen.jobs)
    text = f"{heading(found, time.perf_counter() - started, making)}\n\n{table(found)}"
    print(text)
    if chosen.page:
        put_into(chosen.page, text)
    failures = [f"{title}: {what}" for title, count in found.items() for what in count.failures]
    for what, times in Counter(failures).most_common(40):
        print(f"- {what}" + (f" ({times} times)" if times > 1 else ""))
    sys.exit(bool(failures))


if __name__ == "__main__":
    main()
