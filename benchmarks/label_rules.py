"""How the numbers of labels/ were chosen: each is varied alone, on the data sets that are chosen on.

python benchmarks/label_rules.py judges    landmarks, width and neighbours of the judges: average precision
python benchmarks/label_rules.py flags     noise model and flags: F1, cells ahead of cleanlab, clean labels flagged

A line per value; the shipped one is marked. Prints the means over the planted cells of `audit.py --data choose`.
REPLACEABLE, MOST_OVERLAP and TELLING_GAIN, which decide when labels are replaced or left out: `arena.py rules`.
"""

import argparse
import warnings
from dataclasses import replace

import numpy as np
from sklearn.metrics import average_precision_score

from audit import ATTACKS, LEVELS, SETS, attacked
from floral_learn.labels import flagging, judges, noise
from floral_learn.labels.calibration import log_or_floor
from floral_learn.labels.judges import SETTINGS, choose_scale, prepare_judges

JUDGES = {"landmarks": (100, 200, 400), "width": (0.25, 0.5, 1.0, 2.0), "neighbours": (15, 30, 50)}
FLAGS = {
    "EXPLAINED": (flagging, (0.2, 0.3, 0.45)),
    "WRONG": (flagging, (0.15, 0.25, 0.35, 0.5)),
    "BAR": (flagging, (0.0, 2.0, 4.0, 6.0, 9.0)),
    "RECOGNISED": (flagging, (0, 5)),
    "PRIOR_ROWS": (noise, (3.0, 10.0, 30.0)),
    "SHIFT_PENALTY": (noise, (0.05, 0.5, 2.0, 6.0)),
}


def cells(data="choose"):
    """Yield (data set, rows, true labels, given labels)."""
    kinds = [("none", 0), *((attack, level) for attack in ATTACKS for level in LEVELS)]
    for name, (X, y) in SETS[data]().items():
        for attack, level in kinds:
            yield name, np.asarray(X, dtype=float), y, attacked(X, y, attack, level)


def probability(X, codes, settings):
    rng = np.random.default_rng(0)
    n_classes = int(codes.max()) + 1
    rows = choose_scale(X, codes, n_classes, rng)(X)
    return prepare_judges(rows, rng, settings, codes=codes).probabilities(codes, n_classes)


def vary_judges(args):
    every = [cell for cell in cells() if (cell[2] != cell[3]).any()]
    for name, values in JUDGES.items():
        for value in values:
            settings = replace(SETTINGS, **{name: value})
            found = [
                average_precision_score(given != y, -probability(X, given, settings)[np.arange(len(y)), given])
                for _, X, y, given in every
            ]
            shipped = " (shipped)" if value == getattr(judges.SETTINGS, name) else ""
            print(f"{name} = {value}: average precision {np.mean(found):.4f}{shipped}", flush=True)


def vary_flags(args):
    from cleanlab.filter import find_label_issues

    known = []
    for name, X, y, given in cells(args.data):
        p = probability(X, given, SETTINGS)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            known.append((name, p, y, given, find_label_issues(given, p, n_jobs=1)))
    fitted = [noise.fit_noise(log_or_floor(p), given) for _, p, _, given, _ in known]
    for name, (module, values) in FLAGS.items():
        if args.only and name not in args.only:
            continue
        usual = getattr(module, name)
        for value in values:
            setattr(module, name, value)
            models = fitted if module is flagging else [None] * len(known)  # None: fitted anew
            masks = [
                flagging.flag_labels(p, given, noise=model).flagged
                for (_, p, _, given, _), model in zip(known, models, strict=True)
            ]
            setattr(module, name, usual)
            pairs = [
                [2 * (m & (y != g)).sum() / (m.sum() + (y != g).sum()) for m in (mask, other)]
                for mask, (_, _, y, g, other) in zip(masks, known, strict=True)
                if (y != g).any()
            ]
            ours, others = np.array(pairs).T
            clean = [
                f"{data} {100 * mask.mean():.1f} %"
                for mask, (data, _, y, g, _) in zip(masks, known, strict=True)
                if (y == g).all()
            ]
            shipped = " (shipped)" if value == usual else ""
            print(f"{name} = {value}{shipped}: F1 {ours.mean():.3f}, cleanlab {others.mean():.3f}", end="; ")
            print(f"ahead in {(ours > others).sum()}, behind in {(ours < others).sum()}", end="; ")
            print("clean:", ", ".join(clean), flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["judges", "flags"])
    parser.add_argument("--data", default="choose", choices=list(SETS), help="of flags; nothing is chosen on report")
    parser.add_argument("--only", nargs="*", help="of flags: these numbers alone, such as BAR")
    made = parser.parse_args()
    {"judges": vary_judges, "flags": vary_flags}[made.what](made)
