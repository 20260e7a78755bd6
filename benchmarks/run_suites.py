"""Run the suites of the paper again at one commit, and publish what they leave under docs/results.

    python benchmarks/run_suites.py run --jobs 4            # into runs/store.sqlite; finished cells are not run again
    python benchmarks/run_suites.py publish                 # tables, figures, notes and counts into docs/results
    python benchmarks/run_suites.py summary                 # the counts alone, from the tables that are there
    python benchmarks/run_suites.py run --quick --suites moon,mnist     # what would it cost

`run` can be done on another machine, from a copy of the tree, where what `floral-bench` needs and torch are installed;
there FLORAL_COMMIT names the commit that was copied. `publish` refuses numbers of a tree with local
changes, of several commits, of another version of the results, and suites with failed cells. Suites whose data are not
here are left alone, and so are those on IMDB, which need a GPU, unless they are named:

    FLORAL_TEXT_MODEL=minilm python benchmarks/run_suites.py run --suites imdb,imdb-influence --device cuda --jobs 5
"""

from __future__ import annotations

import argparse
import gzip
import json
import shutil
import sys
from contextlib import ExitStack
from pathlib import Path

from floral_bench.adapt_suite import suite_named
from floral_bench.cli.bench import name_failures, noted
from floral_bench.reporting.environment import environment, publishable
from floral_bench.reporting.making import note_of, parts_of, typed
from floral_bench.runner import run_cells
from floral_bench.spec import Suite
from floral_bench.store import Store, StoreError
from floral_bench.suites import SUITES
from floral_learn.base.files import write_atomically
from floral_learn.datasets.files import search_path

ROOT = Path(__file__).resolve().parents[1]
REFERENCE, NOTES, KEPT = "moon-reference", "suites.json", "rows.csv.gz"
COUNTS, MARKS = "paper-suites.md", ("<!-- who leads -->\n", "<!-- /who leads -->")
WITH_PAGE = ("moon", REFERENCE)  # the others have their rows only
NEEDS = {REFERENCE: "moon_reference_seed42.npz", **{name: "mnist.npz" for name in SUITES if "mnist" in name}}
KNOWN = [*SUITES, REFERENCE]
NAMES = [name for name in KNOWN if not name.startswith("imdb")]


def chosen(args: argparse.Namespace, every: bool = False) -> list[Suite]:
    names = KNOWN if every else [name for name in args.suites.split(",") if name] or NAMES
    if unknown := [name for name in names if name not in KNOWN]:
        sys.exit(f"unknown suite {unknown[0]!r}; known: {', '.join(KNOWN)}")
    found = []
    for name in names:
        if not every and name in NEEDS and not any((folder / NEEDS[name]).is_file() for folder in search_path()):
            print(f"{name}: left out, {NEEDS[name]} is not here")
            continue
        found.append(suite_named(name + ("-quick" if args.quick else "")))
    return found


def run(args: argparse.Namespace) -> int:
    """All suites are one pool of cells: what two of them share is run once, and no process waits for a suite to end."""
    here, suites = environment(args.device), chosen(args)
    if not args.quick:
        publishable(here)
    with Store(args.out / "store.sqlite") as store:
        cells = {suite.name: suite.cells() for suite in suites}
        with ExitStack() as notes:
            for suite in suites:
                note = {"command": typed(), "environment": here, "seeds": list(suite.seeds)}
                notes.enter_context(noted(store, suite.name, note))
            everything = [cell for mine in cells.values() for cell in mine]
            report = run_cells(everything, store, jobs=args.jobs, retry_errors=True, device=args.device)
        for name, mine in cells.items():
            costs = store.costs(cell.key for cell in mine)
            busy = sum(seconds for seconds, _ in costs.values())
            lost = name_failures(store, mine)
            print(f"{name}: {len(costs)} of {len(mine)} cells, {busy:.0f} s of workers, {lost} failed")
        print(f"{report.computed} cells computed in {report.seconds:.0f} s, {report.failed} failed", flush=True)
    return 1 if report.failed else 0


def publish(args: argparse.Namespace) -> int:
    """Pages, rows, pictures and notes of every suite that the store has in full, then the counts and the pages."""
    from floral_bench.reporting.results import Results
    from floral_bench.reporting.write import write_outputs

    everyone = {suite.name: suite.cells() for suite in chosen(args, every=True)}
    with Store(args.out / "store.sqlite", read_only=True) as store:
        for suite in chosen(args):
            keys = [cell.key for cell in everyone[suite.name]]
            known = store.status(keys)
            if not known:
                print(f"{suite.name}: not run")
                continue
            if any(known.get(key) != "done" for key in keys):
                sys.exit(f"{suite.name}: {sum(known.get(key) != 'done' for key in keys)} cells are missing or failed")
            try:
                note = note_of(parts_of(store, suite.name, everyone), trial=args.quick)
            except ValueError as error:
                sys.exit(f"{suite.name}: {error}")
            note["seeds"] = list(suite.seeds)
            target = args.docs / suite.name
            shutil.rmtree(target, ignore_errors=True)
            made = [path for path in write_outputs(Results(suite, store), target, note) if path.name != "run.json"]
            (target / "run.json").unlink()
            shown = "".join(page.read_text("utf-8") for page in args.docs.glob("*.md"))
            paged = suite.name.removesuffix("-quick") in WITH_PAGE
            for path in made:
                if not paged and path.suffix != ".csv" and f"{suite.name}/{path.name}" not in shown:
                    path.unlink()
                elif path.suffix == ".png":
                    with_fewer_colours(path)
                elif path.suffix == ".csv":  # it is kept for ever: small, and the same from the same rows
                    path.with_name(KEPT).write_bytes(gzip.compress(path.read_bytes(), 9, mtime=0))
                    path.unlink()
                else:
                    path.write_text(
                        path.read_text("utf-8").replace("[rows.csv](rows.csv)", f"[{KEPT}]({KEPT})"), "utf-8"
                    )
            kept = args.docs / NOTES
            notes = json.loads(kept.read_text("utf-8")) if kept.exists() else {}
            write_atomically(kept, json.dumps(dict(sorted((notes | {suite.name: note}).items())), indent=1) + "\n")
            print(f"{suite.name}: {len(made)} files in {target}", flush=True)
    return summary(args)


def with_fewer_colours(path: Path) -> None:
    """A picture of lines and letters needs no more than 256 colours, and a repository keeps it for ever.

    The palette covers the whole range of colours, so that no two lines become one.
    """
    from PIL import Image

    with Image.open(path) as picture:
        few = picture.convert("RGB").quantize(256, method=Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
    few.save(path, optimize=True)


def summary(args: argparse.Namespace) -> int:
    """Put the counts into their page, which is begun where there is none."""
    from floral_bench.reporting.summary import read_suites, to_markdown
    from floral_bench.reporting.tables import between_marks

    page = args.docs / COUNTS
    if not page.exists():
        write_atomically(page, "# Paper suites\n\n" + "".join(MARKS))
    between_marks(page, *MARKS, to_markdown(read_suites(args.docs)))
    print(f"wrote {page}")
    return 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=("run", "publish", "summary"))
    parser.add_argument("--suites", default="", help="names, separated by commas (default: all but IMDB)")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--device", default=None, help="torch device of games and networks, such as cuda")
    parser.add_argument("--quick", action="store_true", help="small versions, for a look; from any tree")
    parser.add_argument("--out", type=Path, default=ROOT / "runs", help="folder of the store")
    parser.add_argument("--docs", type=Path, default=ROOT / "docs" / "results", help="where results are published")
    args = parser.parse_args()
    actions = {"run": run, "publish": publish, "summary": summary}
    try:
        sys.exit(actions[args.action](args))
    except (ValueError, StoreError) as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
