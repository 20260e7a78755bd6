"""Certificates on all of MNIST with features that no label has touched, and how long certificates take on a GPU.

    python benchmarks/certificates_mnist.py mnist --out FOLDER [--seconds 60] [--seeds 3]
    python benchmarks/certificates_mnist.py speed --out FOLDER

`mnist` learns an encoder from the images alone (two distorted views of an image should be alike; Chen et al. 2020) and
soft clusters on it (neighbours should share a cluster; Van Gansbeke et al. 2020), then certifies kernel ridge
regression on principal components, random patches, the encoder and the clusters. Settings are chosen on the first
1,000 test rows, which nobody flips, and reported on the other 9,000, for several seeds. Each part writes a JSON file
into FOLDER as soon as it is there. `speed --device cpu` is for two cores (taskset).
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import time
from pathlib import Path

import numpy as np

LEVELS = (0, 50, 100, 200, 400, 600, 800, 1000, 1500, 2000)
LOWEST = 0.95  # accuracy below which a setting is not chosen, where any has it


def keep(out: Path, name: str, rows: list[dict]) -> None:
    """Write what is known so far."""
    commit = os.environ.get("FLORAL_COMMIT")  # of a copied tree, which may lie beside no benchmarks package
    if commit is None:
        from floral_bench.reporting.making import begin

        commit = begin(trial=True).environment.get("commit", "unknown")
    made = {"date": time.strftime("%Y-%m-%d"), "commit": commit, "rows": rows}
    (out / f"{name}.json").write_text(json.dumps(made, indent=1) + "\n", encoding="utf-8")


def load_mnist() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    stored = np.load(Path(os.environ["FLORAL_DATA"]) / "mnist.npz")
    return stored["x_train"], stored["y_train"].astype(int), stored["x_test"], stored["y_test"].astype(int)


# --- features that are made without labels ---------------------------------------------------------------------------


def distorted(images, torch):
    """Another view of each image (b, 1, 28, 28): turned, sheared, moved, bent, thicker or thinner, with a hole."""
    F, b, device = torch.nn.functional, len(images), images.device
    draw = lambda low, high: torch.empty(b, device=device).uniform_(low, high)  # noqa: E731
    angle, scale, shear = draw(-0.35, 0.35), draw(0.75, 1.2), draw(-0.35, 0.35)
    cos, sin = torch.cos(angle) / scale, torch.sin(angle) / scale
    theta = torch.stack(
        [
            torch.stack([cos, -sin + shear * cos, draw(-0.2, 0.2)], dim=1),
            torch.stack([sin, cos + shear * sin, draw(-0.2, 0.2)], dim=1),
        ],
        dim=1,
    )
    grid = F.affine_grid(theta, list(images.shape), align_corners=False)
    bend = F.interpolate(torch.randn(b, 2, 5, 5, device=device) * 0.06, size=28, mode="bicubic", align_corners=True)
    seen = F.grid_sample(images, grid + bend.permute(0, 2, 3, 1), align_corners=False)
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


def encoder(torch):
    nn = torch.nn
    layers = []
    for before, after, pool in ((1, 64, False), (64, 64, True), (64, 128, False), (128, 128, True), (128, 256, False)):
        layers += [nn.Conv2d(before, after, 3, padding=1, bias=False), nn.BatchNorm2d(after), nn.ReLU()]
        layers += [nn.MaxPool2d(2)] if pool else []
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(1024, 256))


def learn_views(images, seconds: float, torch, batch: int, device: str):
    """An encoder under which two views of an image are more alike than views of two images (NT-Xent loss)."""
    F = torch.nn.functional
    body = encoder(torch).to(device)
    head = torch.nn.Sequential(
        torch.nn.BatchNorm1d(256),
        torch.nn.ReLU(),
        torch.nn.Linear(256, 256),
        torch.nn.ReLU(),
        torch.nn.Linear(256, 128),
    ).to(device)
    step = torch.optim.AdamW([*body.parameters(), *head.parameters()], lr=2e-3, weight_decay=1e-4)
    began, steps = time.perf_counter(), 0
    while (spent := time.perf_counter() - began) < seconds:
        for group in step.param_groups:  # a cosine over the time that is given
            group["lr"] = 2e-3 * min(1.0, (steps + 1) / 50) * 0.5 * (1 + np.cos(np.pi * spent / seconds))
        rows = torch.randint(0, len(images), (batch,), device=device)
        x = images[rows]
        with torch.autocast(device, dtype=torch.bfloat16):
            z = head(body(torch.cat([distorted(x, torch), distorted(x, torch)])))
        z = F.normalize(z.float(), dim=1)
        alike = z @ z.T / 0.2
        alike.fill_diagonal_(-1e9)
        loss = F.cross_entropy(alike, torch.cat([torch.arange(batch, 2 * batch), torch.arange(batch)]).to(device))
        step.zero_grad()
        loss.backward()
        step.step()
        steps += 1
    print(f"encoder: {steps} steps of {batch}, loss {float(loss):.3f}, {time.perf_counter() - began:.0f} s", flush=True)
    body.eval()
    return body


def encoded(body, images, torch) -> np.ndarray:
    with torch.no_grad():
        parts = [torch.nn.functional.normalize(body(part).float(), dim=1) for part in images.split(2048)]
    return torch.cat(parts)


def learn_clusters(features, sizes: tuple[int, ...], seconds: float, torch, device: str) -> dict:
    """Soft clusters of the features: neighbours agree, and all clusters are used. One head per number of clusters."""
    near = torch.cat([(part @ features.T).topk(21, dim=1).indices[:, 1:] for part in features.split(2000)])
    heads = {
        size: torch.nn.Sequential(
            torch.nn.BatchNorm1d(features.shape[1], affine=False),
            torch.nn.Linear(features.shape[1], 512),
            torch.nn.ReLU(),
            torch.nn.Linear(512, size),
        ).to(device)
        for size in sizes
    }
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
    for head in heads.values():
        head.eval()
    return heads


def random_patches(train, test, torch, device: str, filters: int = 400):
    """Responses to random patches of the images themselves, whitened, pooled over a 3 x 3 grid."""
    F = torch.nn.functional
    generator = torch.Generator(device="cpu").manual_seed(0)
    rows = torch.randint(0, len(train), (20_000,), generator=generator)
    corner = torch.randint(0, 28 - 7 + 1, (20_000, 2), generator=generator)
    stack = F.unfold(train[rows[:4000]].to(device), 7).transpose(1, 2)  # (4000, 484, 49)
    place = (corner[:4000, 0] * 22 + corner[:4000, 1]).to(device)
    patches = stack[torch.arange(len(stack), device=device), place]
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
    spread = out[0].std(0) + 1e-3
    return [(part - out[0].mean(0)) / spread for part in out]


def components(train, test, count: int, torch, device: str) -> list[np.ndarray]:
    """The first principal components of the training rows, of total variance 1."""
    train, test = train.to(device).double(), test.to(device).double()
    mean = train.mean(0)
    values, vectors = torch.linalg.eigh((train - mean).T @ (train - mean) / len(train))
    kept = vectors[:, -count:] / values[-count:].sum().sqrt()
    return [((part - mean) @ kept).cpu().numpy() for part in (train, test)]


# --- certificates ----------------------------------------------------------------------------------------------------


def measure(clf, X, y, T, t) -> dict:
    """Accuracy, certified accuracy and the flips that half of the rows survive and are right, of one setting."""
    began = time.perf_counter()
    clf.fit(X, y)
    right, flips = clf.predict(T) == t, clf.certified_flips(T)
    counted = np.where(right, flips, -1)
    return {
        "seconds": round(time.perf_counter() - began, 2),
        "accuracy": float(right.mean()),
        "median": int(np.percentile(counted, 50, method="lower")),
        "certified": [float((counted >= level).mean()) for level in LEVELS],
    }


def features_of(images, asked, seed: int, seconds: float, quick: bool, device: str):
    """name -> features of training and test rows and the settings to try; those without an encoder with seed 0 only."""
    import torch

    n = len(images)
    grid = lambda gammas, shares: [{"gamma": g, "ridge": share * n} for g in gammas for share in shares]  # noqa: E731
    torch.manual_seed(seed)
    body = learn_views(images, seconds, torch, 2048 if not quick else 32, device)
    train, test = encoded(body, images, torch), encoded(body, asked, torch)
    heads = learn_clusters(train, (10, 15, 20, 30, 50, 100), seconds / 4, torch, device)
    linear = {"kernel": "linear", "fit_intercept": False}
    with torch.no_grad():
        for size, head in heads.items():
            soft = [head(part).softmax(1).double().cpu().numpy() for part in (train, test)]
            yield f"{size} soft clusters", *soft, [linear | {"ridge": share * n} for share in (0.0005, 0.02)]
    pair = [part.double().cpu().numpy() for part in (train, test)]
    yield "encoder", *pair, grid((1.0, 4.0), (0.0005, 0.01, 0.2, 1.0))
    if seed == 0:
        patches = random_patches(images.cpu(), asked.cpu(), torch, device)
        yield "random patches", *components(*patches, 200, torch, device), grid((1.0,), (0.0005, 0.005, 0.05))
        pixels = [part.reshape(len(part), -1) for part in (images, asked)]
        yield "principal components", *components(*pixels, 50, torch, device), grid((2.0,), (0.0005, 0.005, 0.05))


def mnist(out: Path, seconds: float, device: str, seeds: int, quick: bool) -> None:
    import torch

    from floral_learn import CertifiedKernelClassifier

    X, y, T, t = load_mnist()
    if quick:
        X, y, T, t = X[:400], y[:400], T[:60], t[:60]
    n, few = len(X), min(1000, len(T) // 2)
    images, asked = (torch.as_tensor(part, device=device).float().div(255).reshape(-1, 1, 28, 28) for part in (X, T))
    tried: list[dict] = []
    reported: list[dict] = []
    for seed in range(seeds):
        for name, train, test, settings in features_of(images, asked, seed, seconds, quick, device):
            own = []
            for setting in settings:
                rank = {} if setting.get("kernel") else {"rank": min(1000, n // 4)}
                clf = CertifiedKernelClassifier(device=device, dtype="float32", **rank, **setting)
                found = measure(clf, train, y, test[:few], t[:few])
                own.append((found["accuracy"], found["median"], clf, setting))
                tried.append({"seed": seed, "features": name, "setting": setting, **found})
            good = [row for row in own if row[0] >= LOWEST] or own
            _, _, clf, setting = max(good, key=lambda row: row[1])
            found = measure(clf, train, y, test[few:], t[few:])
            reported.append({"seed": seed, "features": name, "setting": setting, "levels": LEVELS, **found})
            print(seed, name, setting, found, flush=True)
            keep(out, "mnist_settings", tried)
            keep(out, "mnist", reported)


def speed(out: Path, device: str, quick: bool) -> None:
    """100,000 labels x 10,000 predictions on a GPU; 10,000 x 2,000 on two CPU cores (run it under taskset)."""
    from floral_learn import CertifiedKernelClassifier

    rows: list[dict] = []
    on_gpu = [
        (100_000, 10_000, {"device": device, "rank": 1000, "dtype": "float32"}),
        (100_000, 10_000, {"device": device, "rank": 1000}),
        (10_000, 2_000, {"device": device}),
    ]
    on_cpu: list = [(10_000, 2_000, {}), (10_000, 2_000, {"rank": 1000, "dtype": "float32"})]
    for n, m, options in on_cpu if device == "cpu" else on_gpu:
        n, m = (n // 100, m // 100) if quick else (n, m)
        rng = np.random.default_rng(0)
        y = rng.integers(0, 2, size=n + m)
        X = rng.normal(size=(n + m, 20)) + 0.5 * y[:, None]
        if options.get("device") == "cuda":
            import torch

            CertifiedKernelClassifier(**options | {"rank": 10}).fit(X[:500], y[:500]).certified_flips(X[:10])
            torch.cuda.synchronize()
        began = time.perf_counter()
        clf = CertifiedKernelClassifier(**options).fit(X[:n], y[:n])
        fitted = time.perf_counter()
        flips = clf.certified_flips(X[n:])
        done = time.perf_counter()
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        rows.append(
            {
                "labels": n, "predictions": m, "options": options,
                "fit_s": round(fitted - began, 2), "certify_s": round(done - fitted, 2),
                "peak_gib": round(peak, 2), "median": int(np.median(flips)), "cores": len(os.sched_getaffinity(0)),
            }
        )  # fmt: skip
        print(rows[-1], flush=True)
        keep(out, "speed_gpu" if device == "cuda" else "speed_cpu", rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=["mnist", "speed"])
    parser.add_argument("--out", type=Path, required=True, help="folder for the JSON files")
    parser.add_argument("--seconds", type=float, default=60.0, help="how long an encoder learns")
    parser.add_argument("--seeds", type=int, default=3, help="encoders that are learned")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--quick", action="store_true", help="a few rows, to see that it runs")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    if given.part == "mnist":
        mnist(given.out, given.seconds, given.device, given.seeds, given.quick)
    else:
        speed(given.out, given.device, given.quick)


if __name__ == "__main__":
    main()
