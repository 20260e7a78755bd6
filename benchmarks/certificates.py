"""Certificates measured: Moon, tables, answers, MNIST, times, the rule for the ridge, and for which C an SVM has them.

    python benchmarks/certificates.py choose      the rule of ridge="auto", on four other tables
    python benchmarks/certificates.py moon        right and certified on Moon; settings chosen on other splits
    python benchmarks/certificates.py tables      six tables: kernel ridge, spectral features, partitions, smoothing
    python benchmarks/certificates.py answers     certified accuracy after m answers, six tables
    python benchmarks/certificates.py mnist --device cuda    all of MNIST, features that no label has touched
    python benchmarks/certificates.py speed --device cuda    times; with --device cpu for two cores (taskset)
    python benchmarks/certificates.py page        the tables of docs/results/certificates.md, from the rows of all parts
    python benchmarks/certificates.py svm         the table of docs/certificates.md

Rows go into docs/results/certificates/rows.json, with date, commit and command of each part. Tables are read from
FLORAL_DATA.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import time
from itertools import product
from pathlib import Path

import numpy as np
import torch
from csv_rows import into_page
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, make_moons
from sklearn.dummy import DummyClassifier
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from floral_bench.public_tables import load_table
from floral_bench.reporting.making import begin
from floral_bench.reporting.tables import grid
from floral_learn import CertifiedKernelClassifier, PartitionAggregationClassifier, load_moon
from floral_learn.certify import SpectralFeatures
from floral_learn.files.atomic_files import write_atomically
from floral_learn.paper import RandomizedSmoothingClassifier

F = torch.nn.functional
PAGE = Path(__file__).resolve().parents[1] / "docs" / "results" / "certificates.md"
ROWS = PAGE.with_suffix("") / "rows.json"
RADII = (0, 5, 10, 25, 50)
REPORTED, OTHERS = range(5), range(100, 105)  # splits of Moon: those of the page, and those that chose the settings
TABLES = ("banknote", "htru2", "magic04", "phoneme", "pima", "spambase")
SHARES = (0.0, 0.01, 0.02, 0.05, 0.1)  # flipped labels, of the training rows
ASKED = (0, 20, 50, 100)
LEVELS = (0, 50, 100, 200, 400, 600, 800, 1000, 1500, 2000)  # flips on MNIST
LOWEST = 0.95  # accuracy below which a setting is not chosen on MNIST, where any has it


def keep(part: str, rows: list[dict]) -> None:
    """Write what is known so far, whole or not at all."""
    run = begin(trial=True)
    made = {"date": run.started[:10], "commit": run.environment.get("commit", "unknown"), "command": run.command}
    write(json.loads(ROWS.read_text("utf-8")) | {part: made | {"rows": rows}})


def write(parts: dict[str, dict]) -> None:
    """One row a line."""
    texts = []
    for name, part in parts.items():
        rows = ",\n".join(json.dumps(row) for row in part["rows"])
        head = json.dumps({key: value for key, value in part.items() if key != "rows"})[:-1]
        texts.append(f'"{name}": {head}, "rows": [\n{rows}\n]}}')
    write_atomically(ROWS, "{" + ",\n".join(texts) + "}\n")


def read(part: str) -> list[dict]:
    return json.loads(ROWS.read_text("utf-8"))[part]["rows"]


def split(X, y, order, n: int, m: int = 1000):
    """Standardised training and test rows: the first n of an order, and the next m."""
    train, test = order[:n], order[n : n + m]
    scaler = StandardScaler().fit(X[train])
    return scaler.transform(X[train]), y[train], scaler.transform(X[test]), y[test]


def table(name: str, seed: int, m: int = 1000):
    stored = np.load(Path(os.environ["FLORAL_DATA"]) / "tables" / f"{name}.npz")
    X, y = stored["X"].astype(float), stored["y"].astype(int)
    return split(X, y, np.random.default_rng(seed).permutation(len(X)), min(1000, 2 * len(X) // 3), m)


def choose(given) -> None:
    """Accuracy and certified accuracy at 1, 2 and 5 % for shares of n as ridge, gamma="scale"."""
    rows = []
    for name, share in product(("elec2", "a9a", "satimage", "students"), (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.3)):
        found = []
        for seed in range(3):
            X, y, T, t = table(name, seed, m=500)
            clf = CertifiedKernelClassifier(ridge=share * len(X)).fit(X, y)
            found.append([clf.score(T, t), *clf.certified_accuracy(T, t, [int(s * len(X)) for s in SHARES[1:4]])])
        rows.append({"table": name, "share": share, "found": np.mean(found, axis=0).round(4).tolist()})
    keep("choose", rows)


# --- Moon and six tables ----------------------------------------------------------------------------------------------


class Spectral:
    """Spectral features, and a certified linear regression on them."""

    def __init__(self, features, ridge: str | float = 1.0, intercept: bool = True) -> None:
        self.features = features
        self.model = CertifiedKernelClassifier(kernel="linear", ridge=ridge, fit_intercept=intercept)

    def fit(self, X, y):
        self.model.fit(self.features.fit_transform(X), y)
        return self

    def certified_accuracy(self, X, y, radii):
        return self.model.certified_accuracy(self.features.transform(X), y, radii)


class Majority:
    """The more frequent label, whatever the row: turned once half of its lead is flipped (two classes)."""

    def fit(self, X, y):
        classes, counts = np.unique(y, return_counts=True)
        self.label, self.lead = classes[counts.argmax()], counts.max() - counts.min()
        return self

    def certified_accuracy(self, X, y, radii):
        return np.array([(y == self.label).mean() if 2 * r < self.lead else 0.0 for r in radii])


class FiniteAggregation:
    """Finite Aggregation (Wang, Levine, Feizi 2022): k d parts, each read by d of k d voters."""

    def __init__(self, estimator, k: int, d: int) -> None:
        self.estimator, self.k, self.d = estimator, k, d

    def fit(self, X, y):
        count = self.k * self.d
        part = np.empty(len(X), dtype=int)
        part[np.lexsort(X.T[::-1])] = np.arange(len(X)) % count
        shifts = np.random.default_rng(0).choice(count, self.d, replace=False)
        self.readers = (np.arange(count)[:, None] + shifts) % count  # voters that read each part
        self.classes_, self.voters = np.unique(y), []
        for voter in range(count):
            rows = np.isin(part, np.flatnonzero((self.readers == voter).any(axis=1)))
            model = clone(self.estimator) if len(np.unique(y[rows])) > 1 else DummyClassifier()
            self.voters.append(model.fit(X[rows], y[rows]))
        return self

    def certified_accuracy(self, X, y, radii):
        ballots = np.stack([voter.predict(X) for voter in self.voters], 1)
        votes = np.stack([(ballots == c).sum(1) for c in self.classes_], 1)
        winner = votes.argmax(1)
        lead = votes.max(1) - votes.min(1) - (winner == 1)  # two classes, ties to the lower one
        hit = 2 * (ballots == self.classes_[winner][:, None])[:, self.readers].sum(2)  # what a part can take off
        flips = (np.cumsum(-np.sort(-hit, axis=1), axis=1) <= lead[:, None]).sum(1)
        right = self.classes_[winner] == y
        return np.array([(right & (flips >= r)).mean() for r in radii])


def moon_settings():
    """(family, setting, model), unfitted."""
    ridge = lambda g, r: CertifiedKernelClassifier(gamma=g, ridge=r, fit_intercept=False)  # noqa: E731
    svm, parts = SVC(C=10.0, gamma=1.0), PartitionAggregationClassifier
    for g, r in product((0.05, 0.1, 0.2, 0.5, 1.0, 2.0), (1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0)):
        yield "kernel ridge, exact", f"gamma {g:g}, ridge {r:g}", ridge(g, r)
    for with_, (r, g) in product((True, False), product((2, 3, 4, 6, 8, 12, 16), (4.0, 8.0, 16.0))):
        family = f"spectral features, exact, {'with' if with_ else 'without'} intercept"
        yield family, f"{r} features, gamma {g:g}", Spectral(SpectralFeatures(r, gamma=g), intercept=with_)
    for p, g, r in product((5, 15, 50), (0.1, 0.5, 1.0), (1.0, 10.0, 100.0)):
        made = parts(ridge(g, r), n_partitions=p)
        yield "partitions of kernel ridge, white box", f"{p} parts, gamma {g:g}, ridge {r:g}", made
    for p in (10, 50, 100):
        yield "partitions of SVMs, black box", f"{p} parts", parts(svm, n_partitions=p)
    for k in (25, 50):
        yield "finite aggregation of SVMs", f"k {k}, d 2", FiniteAggregation(svm, k, 2)
    for q in (0.1, 0.3):
        smooth = RandomizedSmoothingClassifier(flip_probability=q, kernel="rbf", gamma=1.0, ridge=1.0)
        yield "smoothing", f"rbf, q {q}", smooth
    yield "smoothing", "linear, q 0.1", RandomizedSmoothingClassifier(flip_probability=0.1)


def moon(given) -> None:
    """Right and certified on the test rows of Moon, standardised, clean labels; all settings on both sets of splits."""
    rows = []
    for family, name, model in moon_settings():
        found = {}
        for kind, seeds in (("others", OTHERS), ("reported", REPORTED)):
            shares = []
            for data in (load_moon(random_state=seed) for seed in seeds):
                scaler = StandardScaler().fit(data.X_train)
                model.fit(scaler.transform(data.X_train), data.y_train)
                shares.append(model.certified_accuracy(scaler.transform(data.X_test), data.y_test, np.array(RADII)))
            found[kind] = np.mean(shares, axis=0).round(4).tolist()
        rows.append({"family": family, "setting": name, **found})
    keep("moon", rows)


def tables(given) -> None:
    """Right and certified at shares of flipped labels, five draws of each table; every method by a fixed rule."""
    methods = {
        "SVC, no certificate": lambda n: SVC(),
        "the majority": lambda n: Majority(),
        "kernel ridge, exact": lambda n: CertifiedKernelClassifier(),
        **{f"{r} spectral features, exact": lambda n, r=r: Spectral(SpectralFeatures(r), "auto") for r in (4, 8, 16)},
        "partitions, 50 SVMs": lambda n: PartitionAggregationClassifier(SVC(), n_partitions=50),
        "smoothing, rbf, q 0.1": lambda n: RandomizedSmoothingClassifier(
            flip_probability=0.1, kernel="rbf", ridge=0.02 * n
        ),
    }
    rows = []
    for name, draw in product(TABLES, range(5)):
        X, y, T, t = table(name, draw)
        radii = np.array([int(share * len(X)) for share in SHARES])
        for method, make in methods.items():
            clf = make(len(X)).fit(X, y)
            certified = hasattr(clf, "certified_accuracy")
            found = clf.certified_accuracy(T, t, radii).round(4).tolist() if certified else [clf.score(T, t)]
            rows.append({"table": name, "draw": draw, "method": method, "found": found})
        keep("tables", rows)


# --- answers ----------------------------------------------------------------------------------------------------------


def answers(given) -> None:
    """Certified accuracy after m answers at random rows: labels and answers together, answers alone, and switched.

    Labels and answers together: one regression, answers are trusted, with weight 1 or 10 per answer. Answers alone:
    labels are not used, so that no flip matters. Switched: what answers alone say, unless the regression on the labels
    survives T flips or more; its certificate follows from the two (docs/results/certificates.md).
    """
    rows = []
    for name, draw in product(TABLES, range(5)):
        X, y, T, t = table(name, draw)
        n = len(X)
        radii = np.array([int(share * n) for share in SHARES])
        asked = np.random.default_rng(1000 + draw).permutation(n)
        for m in ASKED:
            trusted = np.isin(np.arange(n), asked[:m])
            row = {"table": name, "draw": draw, "m": m, "n": n}
            models = {}
            for weight in (1.0, 10.0) if m else (1.0,):
                weights = np.where(trusted, weight, 1.0)
                clf = models[weight] = CertifiedKernelClassifier().fit(X, y, sample_weight=weights, trusted=trusted)
                row[f"together, weight {weight:g}"] = clf.certified_accuracy(T, t, radii).tolist()
            if m:
                told = np.unique(y[trusted])  # one class only: then that is all that the answers say
                few = CertifiedKernelClassifier() if len(told) > 1 else DummyClassifier()
                alone = few.fit(X[trusted], y[trusted]).predict(T)
                row["answers alone"] = [float((alone == t).mean())] * len(radii)
                both = models[1.0].predict(T), models[1.0].certified_flips(T), alone, t
                row |= {f"switched at {s:.0%}": switched(*both, int(s * n), radii) for s in SHARES[2:]}
            rows.append(row)
        keep("answers", rows)


def switched(labels, flips, alone, truth, threshold: int, radii) -> list[float]:
    """Right and certified share of: the labels' model where it survives `threshold` flips or more, else answers alone.

    k flips move the number of flips that a row survives by at most k, and turn the row only where it survives fewer.
    So where both say the same, another answer needs the row turned and then threshold flips on the other side:
    flips + 1 + threshold. Where they differ, it needs to cross the threshold: flips + 1 - threshold from above,
    threshold - flips from below.
    """
    use = flips >= threshold
    prediction = np.where(use, labels, alone)
    above, below = flips - threshold, threshold - flips - 1
    certified = np.where(labels == alone, flips + threshold, np.where(use, above, below))
    return [float(((prediction == truth) & (certified >= r)).mean()) for r in radii]


# --- MNIST, with features that are made without labels ----------------------------------------------------------------


def distorted(images):
    """Another view of each image (b, 1, 28, 28): turned, sheared, moved, bent, thicker or thinner, with a hole."""
    b, device = len(images), images.device
    draw = lambda low, high: torch.empty(b, device=device).uniform_(low, high)  # noqa: E731
    angle, size, shear = draw(-0.35, 0.35), draw(0.75, 1.2), draw(-0.35, 0.35)
    cos, sin = torch.cos(angle) / size, torch.sin(angle) / size
    lines = ([cos, -sin + shear * cos, draw(-0.2, 0.2)], [sin, cos + shear * sin, draw(-0.2, 0.2)])
    theta = torch.stack([torch.stack(line, dim=1) for line in lines], dim=1)
    where = F.affine_grid(theta, list(images.shape), align_corners=False)
    bend = F.interpolate(torch.randn(b, 2, 5, 5, device=device) * 0.06, size=28, mode="bicubic", align_corners=True)
    seen = F.grid_sample(images, where + bend.permute(0, 2, 3, 1), align_corners=False)
    kind = torch.randint(0, 4, (b, 1, 1, 1), device=device)
    thick, thin = F.max_pool2d(seen, 3, 1, 1), -F.max_pool2d(-seen, 3, 1, 1)
    mix = draw(0.2, 0.9)[:, None, None, None]
    seen = torch.where(kind == 0, seen + mix * (thick - seen), seen)
    seen = torch.where(kind == 1, seen + 0.6 * mix * (thin - seen), seen)
    place = torch.randint(2, 20, (b, 2, 1, 1), device=device)
    line = torch.arange(28, device=device)
    high, wide = line[None, :, None] - place[:, 0], line[None, None, :] - place[:, 1]
    hole = ((high >= 0) & (high < 7) & (wide >= 0) & (wide < 7))[:, None]
    seen = torch.where(hole & (draw(0, 1) < 0.4)[:, None, None, None], torch.zeros_like(seen), seen)
    return (seen + 0.05 * torch.randn_like(seen)).clamp(0, 1)


def learn_views(images, seconds: float, batch: int, device: str):
    """An encoder under which two views of an image are more alike than views of two images (NT-Xent, Chen et al.)."""
    nn, layers = torch.nn, []
    for before, after, pool in ((1, 64, False), (64, 64, True), (64, 128, False), (128, 128, True), (128, 256, False)):
        layers += [nn.Conv2d(before, after, 3, padding=1, bias=False), nn.BatchNorm2d(after), nn.ReLU()]
        layers += [nn.MaxPool2d(2)] if pool else []
    body = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(1024, 256)).to(device)
    head = nn.Sequential(nn.BatchNorm1d(256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 128)).to(device)
    step = torch.optim.AdamW([*body.parameters(), *head.parameters()], lr=2e-3, weight_decay=1e-4)
    other = torch.cat([torch.arange(batch, 2 * batch), torch.arange(batch)]).to(device)
    began, steps = time.perf_counter(), 0
    while (spent := time.perf_counter() - began) < seconds:
        for group in step.param_groups:  # a cosine over the time that is given
            group["lr"] = 2e-3 * min(1.0, (steps + 1) / 50) * 0.5 * (1 + np.cos(np.pi * spent / seconds))
        x = images[torch.randint(0, len(images), (batch,), device=device)]
        with torch.autocast(device, dtype=torch.bfloat16):
            z = head(body(torch.cat([distorted(x), distorted(x)])))
        z = F.normalize(z.float(), dim=1)
        alike = z @ z.T / 0.2
        alike.fill_diagonal_(-1e9)
        step.zero_grad()
        F.cross_entropy(alike, other).backward()
        step.step()
        steps += 1
    return body.eval()


def learn_clusters(features, sizes: tuple[int, ...], seconds: float, device: str) -> dict:
    """Soft clusters: neighbours agree (Van Gansbeke et al. 2020), and all clusters are used. One head per number."""
    nn, width = torch.nn, features.shape[1]
    near = torch.cat([(part @ features.T).topk(21, dim=1).indices[:, 1:] for part in features.split(2000)])
    layers = lambda: (nn.BatchNorm1d(width, affine=False), nn.Linear(width, 512), nn.ReLU())  # noqa: E731
    heads = {size: nn.Sequential(*layers(), nn.Linear(512, size)).to(device) for size in sizes}
    step = torch.optim.Adam([p for head in heads.values() for p in head.parameters()], lr=1e-3)
    began, batch = time.perf_counter(), min(4096, len(features))
    while time.perf_counter() - began < seconds:
        rows = torch.randint(0, len(features), (batch,), device=device)
        other = near[rows, torch.randint(0, near.shape[1], (batch,), device=device)]
        loss = 0.0
        for head in heads.values():
            p, q = head(features[rows]).softmax(1), head(features[other]).softmax(1)
            used = p.mean(0).clamp(min=1e-8)
            loss = loss - (p * q).sum(1).clamp(min=1e-8).log().mean() + 5.0 * (used * used.log()).sum()
        step.zero_grad()
        loss.backward()
        step.step()
    return {size: head.eval() for size, head in heads.items()}


def random_patches(train, test, device: str, filters: int = 400):
    """Responses to random patches of the images themselves, whitened, pooled over a 3 x 3 grid."""
    generator = torch.Generator(device="cpu").manual_seed(0)
    rows = torch.randint(0, len(train), (20_000,), generator=generator)
    corner = torch.randint(0, 28 - 7 + 1, (20_000, 2), generator=generator)
    stack = F.unfold(train[rows[:4000]].to(device), 7).transpose(1, 2)  # (4000, 484, 49)
    patches = stack[torch.arange(len(stack), device=device), (corner[:4000, 0] * 22 + corner[:4000, 1]).to(device)]
    patches = patches[patches.std(1) > 0.1]
    mean = patches.mean(0)
    values, vectors = torch.linalg.eigh(torch.cov((patches - mean).T))
    white = vectors @ torch.diag((values.clamp(min=0) + 0.01) ** -0.5) @ vectors.T
    bank = F.normalize((patches[:filters] - mean) @ white, dim=1) @ white
    out = []
    for images in (train, test):
        parts = []
        for part in images.split(1000):
            seen = F.conv2d(part.to(device), bank.reshape(-1, 1, 7, 7)) - (bank @ mean)[None, :, None, None]
            parts.append(F.adaptive_avg_pool2d(torch.relu(seen - 0.5), 3).flatten(1).cpu())
        out.append(torch.cat(parts))
    return [(part - out[0].mean(0)) / (out[0].std(0) + 1e-3) for part in out]


def components(train, test, count: int, device: str) -> list[np.ndarray]:
    """The first principal components of the training rows, of total variance 1."""
    train, test = train.to(device).double(), test.to(device).double()
    mean = train.mean(0)
    values, vectors = torch.linalg.eigh((train - mean).T @ (train - mean) / len(train))
    kept = vectors[:, -count:] / values[-count:].sum().sqrt()
    return [((part - mean) @ kept).cpu().numpy() for part in (train, test)]


def features_of(images, asked, seed: int, given):
    """name, features of training and test rows, settings to try; those without an encoder with seed 0 only."""
    device, n = given.device, len(images)
    rbf = lambda gammas, shares: [{"gamma": g, "ridge": share * n} for g in gammas for share in shares]  # noqa: E731
    torch.manual_seed(seed)
    body = learn_views(images, given.seconds, 32 if given.quick else 2048, device)
    with torch.no_grad():
        parts = ([F.normalize(body(x).float(), dim=1) for x in rows.split(2048)] for rows in (images, asked))
        train, test = map(torch.cat, parts)
    heads = learn_clusters(train, (10, 15, 20, 30, 50, 100), given.seconds / 4, device)
    linear = [{"kernel": "linear", "fit_intercept": False, "ridge": share * n} for share in (0.0005, 0.02)]
    with torch.no_grad():
        for size, head in heads.items():
            soft = [head(part).softmax(1).double().cpu().numpy() for part in (train, test)]
            yield f"{size} soft clusters", *soft, linear
    pair = [part.double().cpu().numpy() for part in (train, test)]
    yield "encoder", *pair, rbf((1.0, 4.0), (0.0005, 0.01, 0.2, 1.0))
    if seed == 0:
        patches = random_patches(images.cpu(), asked.cpu(), device)
        yield "random patches", *components(*patches, 200, device), rbf((1.0,), (0.0005, 0.005, 0.05))
        pixels = [part.reshape(len(part), -1) for part in (images, asked)]
        yield "principal components", *components(*pixels, 50, device), rbf((2.0,), (0.0005, 0.005, 0.05))


def mnist(given) -> None:
    """Kernel ridge on each kind of features; settings chosen on the first 1,000 test rows, reported on the others."""
    stored = np.load(Path(os.environ["FLORAL_DATA"]) / "mnist.npz")
    X, y, T, t = (stored[name] for name in ("x_train", "y_train", "x_test", "y_test"))
    if given.quick:
        X, y, T, t = X[:400], y[:400], T[:60], t[:60]
    few, y, t = min(1000, len(T) // 2), y.astype(int), t.astype(int)
    images, asked = (torch.as_tensor(p, device=given.device).reshape(-1, 1, 28, 28).float() / 255 for p in (X, T))
    rows: list[dict] = []
    for seed in range(given.seeds):
        for name, train, test, settings in features_of(images, asked, seed, given):
            own = []
            for setting in settings:
                rank = {} if setting.get("kernel") else {"rank": min(1000, len(X) // 4)}
                clf = CertifiedKernelClassifier(device=given.device, dtype="float32", **rank, **setting)
                own.append((measure(clf, train, y, test[:few], t[:few]), clf, setting))
            good = [row for row in own if row[0]["accuracy"] >= LOWEST] or own
            _, clf, setting = max(good, key=lambda row: row[0]["median"])
            found = measure(clf, train, y, test[few:], t[few:])
            rows.append({"seed": seed, "features": name, "setting": setting, **found})
            print(rows[-1], flush=True)
            if not given.quick:
                keep("mnist", rows)


def measure(clf, X, y, T, t) -> dict:
    """Accuracy, certified accuracy and the flips that half of the rows survive and are right, of one setting."""
    clf.fit(X, y)
    right = clf.predict(T) == t
    counted = np.where(right, clf.certified_flips(T), -1)
    median = int(np.percentile(counted, 50, method="lower"))
    certified = [float((counted >= level).mean()) for level in LEVELS]
    return {"accuracy": float(right.mean()), "median": median, "certified": certified}


def speed(given) -> None:
    """100,000 labels x 10,000 predictions on a GPU; 10,000 x 2,000 on two CPU cores (run it under taskset)."""
    rows, device, cuda = [], given.device, given.device == "cuda"
    on_gpu = [
        (100_000, 10_000, {"device": device, "rank": 1000, "dtype": "float32"}),
        (100_000, 10_000, {"device": device, "rank": 1000}),
        (10_000, 2_000, {"device": device}),
    ]
    on_cpu: list = [(10_000, 2_000, {}), (10_000, 2_000, {"rank": 1000, "dtype": "float32"})]
    for n, m, options in on_gpu if cuda else on_cpu:
        rng = np.random.default_rng(0)
        y = rng.integers(0, 2, size=n + m)
        X = rng.normal(size=(n + m, 20)) + 0.5 * y[:, None]
        if cuda:  # compiles
            CertifiedKernelClassifier(**options | {"rank": 10}).fit(X[:500], y[:500]).certified_flips(X[:10])
            torch.cuda.synchronize()
        began = time.perf_counter()
        clf = CertifiedKernelClassifier(**options).fit(X[:n], y[:n])
        fitted = time.perf_counter()
        clf.certified_flips(X[n:])
        times = {"fit_s": round(fitted - began, 2), "certify_s": round(time.perf_counter() - fitted, 2)}
        peak = round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20, 2)
        rows.append({"labels": n, "predictions": m, "options": options, **times, "peak_gib": peak})
        keep("speed_gpu" if cuda else "speed_cpu", rows)


def svm(given) -> None:
    """For which C the SVM itself is linear in its labels, how often duals are at their bound, what is certified."""
    costs, lines = (0.01, 0.1, 1.0, 10.0), []
    for name in ("Moon", "breast cancer", *TABLES):
        moons, cancer = (make_moons, {"n_samples": 1500, "noise": 0.2, "random_state": 0}), load_breast_cancer
        X, y = moons[0](**moons[1]) if name == "Moon" else (
            cancer(return_X_y=True) if name == "breast cancer" else load_table(name)
        )  # fmt: skip
        X, y, T, t = split(X, y, np.random.default_rng(0).permutation(len(y)), min(500, len(y) // 2))
        n, gamma = len(y), 1 / (X.shape[1] * X.var())
        small = 1 / rbf_kernel(X, gamma=gamma).sum(axis=1).max()
        bound = [np.isclose(np.abs(SVC(C=C, gamma=gamma).fit(X, y).dual_coef_), C).sum() / n for C in costs]
        flips = np.rint(np.array(SHARES[:4]) * n).astype(int)
        plain = CertifiedKernelClassifier(gamma=gamma, ridge=1e6 * n, fit_intercept=False)
        models = (plain, CertifiedKernelClassifier(gamma=gamma))
        told = [" / ".join(f"{v:.3f}" for v in m.fit(X, y).certified_accuracy(T, t, flips)) for m in models]
        at = " / ".join(f"{share:.0%}" for share in bound).replace("%", " %")
        largest = max(float(np.mean(t == label)) for label in np.unique(y))
        lines.append([name, f"{small:.4f}", at, float(SVC(gamma=gamma).fit(X, y).score(T, t)), *told, largest])
    at = " / ".join(f"{C:g}" for C in costs)
    head = ["data", "linear up to C", f"duals of SVC at their bound, C = {at}", "SVC()", "SVM, small C", "ridge"]
    print(f"{begin(trial=True).heading()}\n\n{shown([*head, 'majority'], lines)}")


# --- the page ---------------------------------------------------------------------------------------------------------


def shown(head: list[str], rows: list[list]) -> str:
    """A Markdown table; floats with three digits."""
    return grid(head, [[f"{v:.3f}" if isinstance(v, float) else v for v in row] for row in rows])


def means(values) -> list[float]:
    return [float(v) for v in np.atleast_1d(np.mean(values, axis=0))]


def moon_tables() -> str:
    families: dict[str, list[dict]] = {}
    for row in read("moon"):
        families.setdefault(row["family"], []).append(row)
    each, chosen, one = [], [], []
    for family, rows in families.items():
        best = [max(rows, key=lambda row, c=c: row["others"][c]) for c in range(len(RADII))]
        each.append([family, *(row["reported"][c] for c, row in enumerate(best))])
        chosen.append(f"- {family}: " + "; ".join(f"{r} flips {row['setting']}" for r, row in zip(RADII, best)))
        single = max(rows, key=lambda row: sum(row["others"][1:]))
        one.append([f"{family}: {single['setting']}", *single["reported"]])
    head = [f"{r} flips" for r in RADII]
    between = "One setting for all columns, that with the largest sum over 5 to 50 flips on the other splits:"
    first, second = shown(["a setting per column", *head], each), shown(["one setting", *head], one)
    return "\n\n".join([first, between, second, "Settings of the first table:", "\n".join(chosen)])


def six_tables() -> str:
    rows, out = read("tables"), []
    for place, share in enumerate(SHARES):
        lines = []
        for method in dict.fromkeys(row["method"] for row in rows if len(row["found"]) > place):
            mine = [row for row in rows if row["method"] == method]
            found = [means([r["found"][place] for r in mine if r["table"] == name])[0] for name in TABLES]
            lines.append([method, *found, *means(found), float(np.median(found))])
        out.append(shown([f"{share:.0%} of the labels flipped", *TABLES, "mean", "median"], lines))
    return "\n\n".join(out)


def answer_tables() -> str:
    rows, out = read("answers"), []
    kinds = [key for key in rows[1] if key not in ("table", "draw", "m", "n")]
    for m in ASKED:
        own = {kind: [row[kind] for row in rows if row["m"] == m and kind in row] for kind in kinds}
        lines = [[kind, *means(found)] for kind, found in own.items() if found]
        out.append(shown([f"{m} answers", *(f"{share:.0%} flipped" for share in SHARES)], lines))
    wins, margin, per_table = dict.fromkeys(kinds, 0), [], []
    for name, m in product(TABLES, ASKED[1:]):
        mine = [row for row in rows if (row["table"], row["m"]) == (name, m)]
        at = {kind: means([row[kind][2] for row in mine])[0] for kind in kinds}
        wins[max(at, key=at.get)] += 1
        margin.append(max(v for k, v in at.items() if k.startswith("switched")) - at["answers alone"])
        per_table.append([f"{name}, {m} answers", *at.values()])
    told = ", ".join(f"{kind} {count}" for kind, count in wins.items() if count)
    out.append(
        f"Highest at 2 % flipped labels, of {len(margin)} pairs of a table and a number of answers (equal ones count "
        f"for the first named): {told}. The best switch is {min(margin):+.3f} to {max(margin):+.3f} from answers alone."
    )
    return "\n\n".join([*out, shown(["at 2 % flipped labels", *kinds], per_table)])


def mnist_table() -> str:
    rows, lines = read("mnist"), []
    columns = [LEVELS.index(level) for level in (100, 200, 600, 1000, 2000)]
    for name in dict.fromkeys(row["features"] for row in rows):
        own = [row for row in rows if row["features"] == name]
        certified = means([row["certified"] for row in own])
        halves = " / ".join(f"{row['median']:,}" for row in own)
        lines.append([name, *means([row["accuracy"] for row in own]), halves, *(certified[i] for i in columns)])
    return shown(["features", "accuracy", "flips that half survive", *(f"at {LEVELS[i]:,}" for i in columns)], lines)


def speed_table() -> str:
    lines = []
    for part, where in (("speed_gpu", "H200"), ("speed_cpu", "2 cores")):
        for row in read(part):
            options = ", ".join(f"{k}={v}" for k, v in row["options"].items() if k != "device") or "defaults"
            size, peak = f"{row['labels']:,} x {row['predictions']:,}", f"{row['peak_gib']:.1f} GiB"
            lines.append([size, where, options, f"{row['fit_s']:.1f} s", f"{row['certify_s']:.1f} s", peak])
    return shown(["labels x predictions", "where", "options", "fit", "certify", "peak memory"], lines)


def ridge_table() -> str:
    rows = read("choose")
    shares = dict.fromkeys(row["share"] for row in rows)
    lines = [[f"{s:g} n", *means([row["found"] for row in rows if row["share"] == s])] for s in shares]
    return shown(["ridge", "accuracy", "1 % flipped", "2 %", "5 %"], lines)


def runs() -> str:
    made = json.loads(ROWS.read_text("utf-8"))
    return "\n".join(f"- {name}: {m['date']}, commit {m['commit']}, `{m['command']}`" for name, m in made.items())


def page(given) -> None:
    """Fill what stands between <!-- name --> and <!-- /name --> in docs/results/certificates.md."""
    parts = {"runs": runs, "moon": moon_tables, "tables": six_tables, "answers": answer_tables, "mnist": mnist_table}
    for name, make in (parts | {"speed": speed_table, "ridge": ridge_table}).items():
        into_page(PAGE, f"<!-- {name} -->", f"\n{make()}\n\n", f"<!-- /{name} -->")


def main() -> None:
    made = (choose, moon, tables, answers, mnist, speed, page, svm)
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=[part.__name__ for part in made])
    parser.add_argument("--seconds", type=float, default=60.0, help="mnist: how long an encoder learns")
    parser.add_argument("--seeds", type=int, default=3, help="mnist: encoders that are learned")
    parser.add_argument("--device", default="cuda", help="of mnist and speed")
    parser.add_argument("--quick", action="store_true", help="mnist: a few rows, to see that it runs; keeps nothing")
    given = parser.parse_args()
    next(part for part in made if part.__name__ == given.part)(given)


if __name__ == "__main__":
    main()
