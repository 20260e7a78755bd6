"""Why FLORAL and MiniLM lean on different reviews at 10 % poison: their influences, row by row, at several levels.

    FLORAL_DATA=folder python benchmarks/imdb_overlap.py --device cuda --out runs     # runs/export/overlap-LEVEL.npz

Writes, for one draw, FLORAL's duals and decision values (budget 2 %, as in imdb-influence) and MiniLM's input gradients
and logits on the training rows, with given and true labels. Encoders come from the suite's work folder where they are.
imdb_results.py puts what `overlap_table` reads from these files on the page.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))

import numpy as np

FELT = 0.1  # of the largest dual: a row below it moves the decision little


def overlap_table(folder: Path) -> list[list[str]]:
    """For each level that was looked at: how many rows matter, what both models share of these and of a quarter."""
    from floral_learn.neural.influence import overlap

    rows = []
    for path in sorted(folder.glob("overlap-*.npz"), key=lambda p: float(p.stem.split("-")[1])):
        with np.load(path) as found:
            duals, norms = (found[name].astype(float) for name in ("duals", "norms"))
            y, wrong = found["given"], found["given"] != found["y"]
            fits = (found["logits"][:, 1].astype(float) > found["logits"][:, 0]) == (y > 0)
        felt = float((duals > FELT * duals.max()).mean())
        edges = [np.sort(values)[-(len(values) // 4)] / values.max() for values in (duals, norms)]
        level = float(path.stem.split("-")[1])
        rows.append(
            [
                f"{level:g} %" if level else "clean",
                f"{fits.mean():.3f}",
                f"{fits[wrong].mean():.3f}" if wrong.any() else "-",
                f"{felt:.3f}",
                f"{overlap(duals, norms, felt):.3f}",
                f"{overlap(duals, norms, 0.25):.3f}",
                *(f"{edge:.1g}" for edge in edges),
            ]
        )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draw", type=int, default=1)
    parser.add_argument("--levels", type=float, nargs="+", default=[10, 25, 0])
    parser.add_argument("--device", default=None)
    parser.add_argument("--model", default=None, help="folder of the encoder; without it the installed MiniLM")
    parser.add_argument("--out", type=Path, default=Path("runs"))
    parser.add_argument("--rows", type=int, default=None, help="training and test rows, for a trial")
    parser.add_argument("--epochs", type=int, default=None, help="for a trial")
    parser.add_argument("--max-length", type=int, default=None, help="for a trial")
    given = parser.parse_args()
    if given.model is not None:
        os.environ["FLORAL_TEXT_MODEL"] = str(Path(given.model).resolve())
    os.environ.setdefault("FLORAL_WORK", str((given.out / "work").resolve()))

    from imdb_answers import data_of

    from floral_bench.families.text_data import draw_of
    from floral_bench.families.text_encode import encode
    from floral_bench.families.text_heads import gradient_labels
    from floral_bench.spec import Attack
    from floral_learn.floral.classifier import FloralClassifier
    from floral_learn.floral.engine import Engine
    from floral_learn.neural.influence import dual_influence, overlap

    data, (C, gamma) = data_of(given.draw, given), (10, 0.005)
    draw = draw_of(data)
    folder = given.out / "export"
    folder.mkdir(parents=True, exist_ok=True)
    for level in given.levels:
        began = time.monotonic()
        labels = draw.y_train
        if level:
            labels = gradient_labels(data, Attack("gradient"), [level], given.draw, given.device, lambda share: None)[0]
        own = encode(data, labels, given.draw, given.device)
        X = own.train.astype(np.float32)
        engine = Engine(device=given.device)
        head = FloralClassifier(C=C, gamma=gamma, budget=0.02, engine=engine, random_state=given.draw)
        duals = dual_influence(head.fit(X, labels))
        np.savez_compressed(
            folder / f"overlap-{level:g}.npz",
            duals=duals.astype(np.float32),
            norms=own.norms,
            logits=own.logits.astype(np.float16),
            scores=head.decision_function(X).astype(np.float16),
            given=labels.astype(np.int8),
            y=draw.y_train.astype(np.int8),
        )
        took = time.monotonic() - began
        print(f"{level:g} %: overlap {overlap(duals, own.norms):.3f}, {took:.0f} s", flush=True)


if __name__ == "__main__":
    main()
