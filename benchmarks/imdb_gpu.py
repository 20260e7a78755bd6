"""The IMDB suites where only torch, transformers and scikit-learn are installed, such as on a lent GPU.

    FLORAL_DATA=folder python benchmarks/imdb_gpu.py --jobs 5 --device cuda --model folder-of-minilm --out runs

Runs ``imdb`` and ``imdb-influence`` through the evaluation room: the same cells and the same store as ``floral bench
imdb``, without the terminal's extras. Cells of both suites that share an encoder run together, level by level in the
order of ``--levels``. It may be killed at any moment: the same command goes on. ``--export`` is a folder for what
should be carried home: the store (gzip), times and, where asked for, embeddings of the first draw with their labels.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import sqlite3
import sys
import threading
import time
import warnings
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))

STARTED = time.perf_counter()
HEARTBEAT = 30.0


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--suites", nargs="+", default=["imdb", "imdb-influence"])
    parser.add_argument("--jobs", type=int, default=1, help="processes; they share one GPU")
    parser.add_argument("--device", default=None, help="cuda or nothing")
    parser.add_argument("--model", default=None, help="folder of the encoder; without it the installed MiniLM")
    parser.add_argument("--out", type=Path, default=Path("runs"), help="store.sqlite and the work folder go here")
    parser.add_argument("--export", type=Path, default=None, help="small files to carry home")
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--levels", type=float, nargs="+", default=[])
    parser.add_argument("--rows", type=int, default=None, help="training and test rows, for a trial")
    parser.add_argument("--rounds", type=int, default=None, help="rounds of the games, for a trial")
    parser.add_argument("--max-length", type=int, default=None, help="tokens of a review, for a trial")
    parser.add_argument("--epochs", type=int, default=None, help="epochs of the encoder, for a trial")
    parser.add_argument("--without", nargs="+", default=[], help="methods to leave out, such as svc-default")
    parser.add_argument("--embeddings", action="store_true", help="export embeddings of the first draw, 60 MB")
    parser.add_argument("--retry-errors", action="store_true")
    return parser.parse_args()


def say(text: str) -> None:
    print(f"{time.perf_counter() - STARTED:7.1f} s  {text}", flush=True)


class Lines:
    """Progress as lines: what ended, what failed, and the store carried out after each job."""

    def __init__(self, store: Path, export: Path | None) -> None:
        self.store, self.export, self.saved = store, export, 0.0

    def start(self, jobs, shares) -> None:
        self.jobs, self.done, self.shares = len(jobs), 0, shares
        say(f"{sum(len(job.cells) for job in jobs)} cells in {len(jobs)} jobs")
        self.over = threading.Event()
        threading.Thread(target=self.beat, daemon=True).start()

    def beat(self) -> None:
        while not self.over.wait(HEARTBEAT):
            running = [f"{100 * share:.0f} %" for share in self.shares if 0 < share < 1]
            say(f"  {self.done} of {self.jobs} jobs ended; begun or done: {', '.join(running)}")

    def finished(self, number, job, results) -> None:
        self.done += 1
        say(f"{self.done}/{self.jobs} {job.title} [{sum(r.seconds for r in results):.0f} s]")
        for error in sorted({r.error for r in results if r.error}):
            names = [r.cell.method.title for r in results if r.error == error]
            say(f"  failed: {error} ({len(names)} cells: {', '.join(names[:3])})")
        if self.export is not None and time.perf_counter() - self.saved > 20:
            pack_store(self.store, self.export)
            self.saved = time.perf_counter()

    def stop(self) -> None:
        self.over.set()


def pack_store(store: Path, export: Path) -> None:
    """A consistent copy of the store, compressed."""
    copy = store.with_suffix(".copy")
    copy.unlink(missing_ok=True)
    source, target = sqlite3.connect(store), sqlite3.connect(copy)
    source.backup(target)
    source.close()
    target.close()
    made = export / ".store.gz"
    made.write_bytes(gzip.compress(copy.read_bytes(), 6))
    os.replace(made, export / "store.sqlite.gz")
    copy.unlink()


def export_embeddings(suite, store, export: Path, level: float = 25, rows: int = 20_000) -> None:
    """Float16 embeddings of the first draw, by the clean encoder and by the one tuned on poisoned labels."""
    import numpy as np

    from floral_bench.families.text_data import draw_of
    from floral_bench.families.text_encode import encode
    from floral_bench.spec import attack_cell

    if level not in suite.levels:
        return
    data, seed = suite.data[0], suite.seeds[0]
    labels = store.trace(attack_cell(data, suite.attacks[0], level, seed), "labels")
    if labels is None:
        return
    draw = draw_of(data)
    for name, y in (("clean", draw.y_train), ("own", labels)):
        made = encode(data, y, seed, None)  # from the work folder
        np.save(export / f"{name}_train.npy", made.train)
        np.save(export / f"{name}_test.npy", made.test[:rows])
    kept = {"poisoned": labels, "clean": draw.y_train, "test": draw.y_test[:rows]}
    np.savez_compressed(export / "labels.npz", **{key: np.asarray(value, np.int8) for key, value in kept.items()})


def adapted(suite, given: argparse.Namespace):
    """The suite as the options say."""
    from floral_bench.adapt_suite import adapt
    from floral_bench.spec import Data, params

    suite = adapt(suite, reps=given.draws, levels=given.levels)
    suite = replace(suite, methods=tuple(m for m in suite.methods if m.name not in given.without))
    sizes = {}
    if given.rows is not None:
        sizes |= {"n_train": given.rows, "n_val": 10, "n_test": given.rows}
    if given.max_length is not None:
        sizes["max_length"] = given.max_length
    if given.epochs is not None:
        sizes["epochs"] = given.epochs
    if given.rounds is not None and suite.grid is not None:
        suite = replace(suite, grid=replace(suite.grid, rounds=given.rounds))
    return replace(suite, data=tuple(Data(d.name, params(**(dict(d.params) | sizes))) for d in suite.data))


def main() -> None:
    given = options()
    if given.model is not None:
        os.environ["FLORAL_TEXT_MODEL"] = str(Path(given.model).resolve())
    os.environ.setdefault("FLORAL_WORK", str((given.out / "work").resolve()))
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "true")
    warnings.filterwarnings("ignore", message="eta = ")  # the store has it as eta_lambda_max

    from floral_bench.reporting.making import begin
    from floral_bench.runner import run_cells
    from floral_bench.store import Store
    from floral_bench.suites import SUITES

    trial = any(v is not None for v in (given.rows, given.rounds, given.max_length, given.epochs))
    making = begin(trial=trial, device=given.device)
    given.out.mkdir(parents=True, exist_ok=True)
    if given.export is not None:
        given.export.mkdir(parents=True, exist_ok=True)
    suites = {name: adapted(SUITES[name], given) for name in given.suites}
    order = given.levels or sorted({level for suite in suites.values() for level in suite.levels})
    cells = sorted((cell for suite in suites.values() for cell in suite.cells()), key=lambda c: order.index(c.level))
    seeds = list(range(1, given.draws + 1))
    note = {"command": making.command, "environment": making.environment, "seeds": seeds}
    if given.export is not None:  # before anything else: a run that is cut off has its note, too
        (given.export / "times.json").write_text(json.dumps({"imdb": note}, indent=1) + "\n")
    with Store(given.out / "store.sqlite") as store:
        runs = [store.begin_run(name, note) for name in suites]
        lines = Lines(given.out / "store.sqlite", given.export)
        report = run_cells(
            cells, store, jobs=given.jobs, retry_errors=given.retry_errors, watcher=lines, device=given.device
        )
        for run in runs:
            store.end_run(run, "done", report.seconds)
        say(f"{report.computed} computed, {report.reused} known, {report.failed} failed")
        if given.export is not None:
            pack_store(given.out / "store.sqlite", given.export)
            times = {"imdb": {"seconds": report.seconds, "split": report.split, **note}}
            (given.export / "times.json").write_text(json.dumps(times, indent=1) + "\n")
            if "imdb" in suites and given.embeddings:
                export_embeddings(suites["imdb"], store, given.export)
    say("done")


if __name__ == "__main__":
    main()
