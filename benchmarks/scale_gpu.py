"""The game on one CUDA device: correctness beside numpy, rounds a second, bytes a second against the card's own copy.

    python benchmarks/scale_gpu.py [--quick]

Prints Markdown. Bytes of a dense round count K once; the ceiling is a device-to-device copy measured in the same run,
counting bytes read and written. Data are synthetic (a mixture of Gaussians, d = 100).
"""

import argparse
import time
import warnings

import numpy as np
import torch
from sklearn.svm import SVC

from floral_bench.reporting.making import begin
from floral_learn import Engine, FloralClassifier
from floral_learn.game.arrays import NUMPY
from floral_learn.game.attackers import RandomizedTopK
from floral_learn.game.game import Game, solve, step_schedule
from floral_learn.game.gram import DenseGram
from floral_learn.game.kernels import Kernel
from floral_learn.game.low_rank import LowRankGram
from floral_learn.game.projections import project_exact
from floral_learn.game.torch_arrays import TorchBackend

GPU = TorchBackend("cuda")
C = 10.0


def row(*cells):
    print("| " + " | ".join(str(c) for c in cells) + " |", flush=True)


def header(title, *columns):
    print(f"\n### {title}\n")
    row(*columns)
    row(*["---"] * len(columns))


def seconds(call, repeat=3):
    times = []
    for _ in range(repeat):
        torch.cuda.synchronize()
        began = time.perf_counter()
        call()
        torch.cuda.synchronize()
        times.append(time.perf_counter() - began)
    return float(np.median(times))


def data(n, d=100, seed=0):
    centres = np.random.default_rng(99).normal(size=(2, d), scale=0.35)  # the same for training and test rows
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, size=n)
    X = rng.standard_normal((n, d), dtype=np.float32) + centres[y].astype(np.float32)
    return X, np.where(rng.random(n) < 0.05, 1 - y, y)


def data_on_device(n, d=100, seed=0):
    """The same mixture, drawn on the device: ten million rows take a minute on the host."""
    random = torch.Generator("cuda").manual_seed(seed)
    centres = torch.as_tensor(np.random.default_rng(99).normal(size=(2, d), scale=0.35), device="cuda").float()
    y = torch.randint(0, 2, (n,), generator=random, device="cuda")
    X = torch.randn((n, d), generator=random, device="cuda")
    for start in range(0, n, 2**20):
        X[start : start + 2**20] += centres[y[start : start + 2**20]]
    flipped = torch.rand(n, generator=random, device="cuda") < 0.05
    return X, torch.where(flipped, 1 - y, y).cpu().numpy()


def copy_bandwidth():
    source = torch.randn(2**30, device="cuda")
    target = torch.empty_like(source)
    target.copy_(source)
    return 2 * source.nbytes / seconds(lambda: target.copy_(source), 20)


def play(gram, y, rounds, games=1, eta=None, budget=None):
    n = gram.n
    eta = 1 / gram.lambda_max(centred=True) if eta is None else eta
    budget = n // 50 if budget is None else budget
    steps = step_schedule(np.full(games, eta), rounds)
    attacker = RandomizedTopK(budget, budget // 2)
    return solve(Game(gram, y, np.full(n, C), steps, attacker, seeds=np.arange(games)))


def round_seconds(gram, y, rounds, games=1):
    """A round in the middle of a game: what more rounds take, over their number."""
    eta = 1 / gram.lambda_max(centred=True)
    play(gram, y, 30, games, eta)  # compiles the kernels
    few, many = (seconds(lambda r=r: play(gram, y, r, games, eta)) for r in (30, 30 + rounds))
    return (many - few) / rounds


def check():
    """The same game on both, and the kernels against plain arithmetic."""
    rng = np.random.default_rng(0)
    for n, c in ((1, 1), (7, 3), (5000, 4)):
        z, signs = rng.normal(size=(n, c)), rng.choice([-1.0, 1.0], size=(n, c))
        cap = rng.uniform(0, 1, size=(n, 1)) * (rng.random((n, 1)) < 0.9)
        here = project_exact(*(NUMPY.columns(v) for v in (z, signs, cap)))
        there = project_exact(*(GPU.columns(v) for v in (z, signs, cap)), backend=GPU)
        np.testing.assert_allclose(GPU.numpy(there.dual), here.dual, atol=1e-12)
        assert bool(there.converged.all())
    matrix = torch.randn(3001, 3001, device="cuda")
    matrix = matrix + matrix.T
    for c in (1, 2, 3, 4, 8):
        V = torch.randn(3001, c, device="cuda")
        exact = matrix.double() @ V.double()
        error = (GPU.symmetric_product(matrix, V).double() - exact).norm() / exact.norm()
        assert error < 3e-5, error
    wide = torch.randn(256, 300_001, device="cuda")
    for c in (1, 2):
        V = torch.randn(300_001, c, device="cuda")
        exact = wide.double() @ V.double()
        error = (GPU.product(wide, V).double() - exact).norm() / exact.norm()
        assert error < 1e-5, error
    X, y = data(3000)
    kernel = Kernel("rbf", gamma=0.005)
    reference = play(DenseGram.from_rows(X, kernel), y, 200)
    agreement = {}
    for dtype in ("float64", "float32"):
        result = play(DenseGram.from_rows(X, kernel, dtype, GPU), y, 200)
        pairs = zip(reference.history["flips"][1:, :, 0], result.history["flips"][1:, :, 0])
        same = np.mean([len(np.intersect1d(a, b)) for a, b in pairs]) / reference.history["flips"].shape[1]
        agreement[dtype] = (same, np.abs(result.weights - reference.weights).max())
    assert agreement["float64"][0] == 1.0
    assert agreement["float32"][0] >= 0.99
    on_device = FloralClassifier(n_rounds=50, budget=0.1, random_state=0).fit(torch.as_tensor(X, device="cuda"), y)
    from_host = FloralClassifier(n_rounds=50, budget=0.1, random_state=0, engine=Engine(device="cuda")).fit(X, y)
    scores = on_device.decision_function(torch.as_tensor(X, device="cuda"))
    assert scores.is_cuda
    np.testing.assert_allclose(scores.cpu().numpy(), from_host.decision_function(X), atol=1e-6)
    try:
        DenseGram.from_rows(torch.zeros((300_000, 1), device="cuda"), kernel, "float32", GPU)
    except MemoryError as error:
        print(f"\nA Gram that does not fit: {error}")
    print("\nSame flips as numpy in float64 (n = 3,000, 200 rounds): "
          + ", ".join(f"{d} {s:.4f} (largest dual difference {w:.1e})" for d, (s, w) in agreement.items()))  # fmt: skip


def dense(sizes, ceiling, rounds):
    header(
        "Dense games, float32",
        "n", "K GB", "build s", "ms a round", "rounds/s", "TB/s of K", "share of copy",
        "10 games, ms a round",
    )  # fmt: skip
    for n in sizes:
        X, y = data(n)
        began = time.perf_counter()
        gram = DenseGram.from_rows(X, Kernel("rbf", gamma=0.005), "float32", GPU)
        torch.cuda.synchronize()
        build = time.perf_counter() - began
        each = round_seconds(gram, y, rounds)
        ten = round_seconds(gram, y, max(20, rounds // 2), 10)
        rate = gram.nbytes / each
        row(f"{n:,}", f"{gram.nbytes / 1e9:.1f}", f"{build:.2f}", f"{1e3 * each:.2f}", f"{1 / each:,.0f}",
            f"{rate / 1e12:.2f}", f"{rate / ceiling:.0%}", f"{1e3 * ten:.2f}")  # fmt: skip
        del gram
        torch.cuda.empty_cache()


def products(sizes):
    """The product alone, against the library's, and how many operations a round is made of."""
    header("A product with two columns alone, float32", "n", "half of K read, ms", "library, ms")
    for n in sizes:
        matrix, V = torch.ones(n, n, device="cuda"), torch.randn(2, n, device="cuda", dtype=torch.float64).T
        half = device_ms(lambda matrix=matrix, V=V: GPU.symmetric_product(matrix, V))
        whole = device_ms(lambda matrix=matrix, V=V: V.T.float() @ matrix)
        row(f"{n:,}", f"{half:.2f}", f"{whole:.2f}")
        del matrix
    X, y = data(3000)
    gram = DenseGram.from_rows(X, Kernel("rbf", gamma=0.005), "float32", GPU)
    few, many = (launches(lambda r=r: play(gram, y, r)) for r in (30, 60))
    print(f"\nOperations on the device in a round: {(many - few) / 30:.0f}")


def device_ms(call, repeat=20):
    call()
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start.record()
    for _ in range(repeat):
        call()
    end.record()
    torch.cuda.synchronize()
    return start.elapsed_time(end) / repeat


def launches(call):
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CUDA]) as seen:
        call()
        torch.cuda.synchronize()
    return sum(event.count for event in seen.key_averages() if event.device_type.name == "CUDA")


def low_rank(sizes, ceiling, rounds):
    header("Low-rank games, rank 256, float32", "n", "factor GB", "build s", "product alone, ms", "ms a round",
           "rounds/s", "TB/s of F (read twice)", "share of copy")  # fmt: skip
    for n in sizes:
        X, y = data_on_device(n)
        torch.cuda.synchronize()
        began = time.perf_counter()
        gram = LowRankGram(X, Kernel("rbf", gamma=0.005), 256, 0.0, np.random.default_rng(0), "float32", GPU)
        torch.cuda.synchronize()
        build = time.perf_counter() - began
        each = round_seconds(gram, y, rounds)
        rate = 2 * gram.nbytes / each
        V = torch.randn(2, n, device="cuda", dtype=torch.float64).T
        alone = device_ms(lambda gram=gram, V=V: gram.matmat(V))
        row(f"{n:,}", f"{gram.nbytes / 1e9:.2f}", f"{build:.1f}", f"{alone:.2f}", f"{1e3 * each:.2f}",
            f"{1 / each:,.0f}", f"{rate / 1e12:.2f}", f"{rate / ceiling:.0%}")  # fmt: skip
        del gram, X
        torch.cuda.empty_cache()


def whole_fits(n):
    X, y = data(n)
    T, _ = data(10_000, seed=1)
    header(f"Whole fits, n = {n:,}, d = 100", "what", "s", "same predictions as dense GPU, 10,000 rows")
    params = {"C": C, "gamma": 0.005, "random_state": 0}
    given = {"budget": 0.02}
    FloralClassifier(engine=Engine(device="cuda", gram="dense"), n_rounds=30, tol=None, **given, **params).fit(X, y)
    predictions = {}
    fits = {
        "FLORAL dense on the GPU, 1,000 rounds": Engine(device="cuda", gram="dense"),
        "FLORAL low rank on the GPU, 1,000 rounds": Engine(device="cuda", gram="low_rank", rank=256),
        "FLORAL low rank on the CPU, 1,000 rounds": Engine(gram="low_rank", rank=256),
    }
    for name, engine in fits.items():
        began = time.perf_counter()
        clf = FloralClassifier(n_rounds=1000, tol=None, engine=engine, **params, **given).fit(X, y)
        spent = time.perf_counter() - began
        predictions[name] = clf.predict(T)
        row(name, f"{spent:.2f}", f"{np.mean(predictions[name] == next(iter(predictions.values()))):.4f}")
    gram = DenseGram.from_rows(X, Kernel("rbf", gamma=0.005), "float32", GPU)
    row("ten dense games of 500 rounds in one batch", f"{seconds(lambda: play(gram, y, 500, 10)):.2f}", "")
    began = time.perf_counter()
    svc = SVC(C=C, gamma=0.005).fit(X, y)
    row("scikit-learn SVC on the CPU", f"{time.perf_counter() - began:.2f}",
        f"{np.mean(svc.predict(T) == next(iter(predictions.values()))):.4f}")  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    quick = parser.parse_args().quick
    warnings.simplefilter("ignore", UserWarning)
    print(f"{begin(trial=True).heading()}, {torch.cuda.get_device_name()}, torch {torch.__version__}")
    check()
    ceiling = copy_bandwidth()
    print(f"\nDevice-to-device copy: {ceiling / 1e12:.2f} TB/s (bytes read and written)")
    dense((10_000, 20_000) if quick else (10_000, 20_000, 50_000, 100_000), ceiling, 20 if quick else 100)
    products((10_000,) if quick else (20_000, 50_000))
    low_rank((100_000,) if quick else (1_000_000, 10_000_000), ceiling, 10 if quick else 200)
    whole_fits(4000 if quick else 20_000)


if __name__ == "__main__":
    main()
