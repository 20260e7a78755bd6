"""The wheel: it holds every file that the code reads, installs in an empty environment, and runs the README's example.

Dependencies are not downloaded again: the new environment sees those of this one through a .pth file. Such a path is
not searched for further .pth files, so the editable floral-learn of this environment stays invisible.
"""

import importlib.util
import re
import shlex
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "floral_learn"
pytest.importorskip("build", reason="the wheel is built with `build`: pip install '.[dev]'")
pytestmark = pytest.mark.skipif(not (ROOT / "pyproject.toml").is_file(), reason="not in a source tree")


def built(source, folder):
    """The wheel, made of the source archive, which lies beside it."""
    # With hatchling at hand nothing is downloaded; otherwise `build` fetches it into an environment of its own.
    isolation = ["--no-isolation"] if importlib.util.find_spec("hatchling") else []
    done = subprocess.run(
        [sys.executable, "-m", "build", *isolation, "--outdir", str(folder), str(source)],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout[-1000:] + done.stderr[-2000:]
    (made,) = folder.glob("floral_*.whl")
    return made


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    return built(ROOT, tmp_path_factory.mktemp("dist"))


def test_the_wheel_holds_every_file_of_the_package(wheel):
    inside = set(zipfile.ZipFile(wheel).namelist())
    files = [p for p in SOURCE.rglob("*") if p.is_file() and "__pycache__" not in p.parts]
    assert {p.suffix for p in files} >= {".py", ".typed", ".npy", ".html", ".css", ".js"}
    missing = {str(p.relative_to(SOURCE.parent)) for p in files} - inside
    assert not missing
    assert not [name for name in inside if name.startswith(("tests/", "docs/"))]


def test_the_wheel_and_the_source_archive_pass_twine(wheel):
    pytest.importorskip("twine", reason="pip install '.[dev]'")
    both = [str(wheel), *map(str, wheel.parent.glob("*.tar.gz"))]
    assert len(both) == 2
    done = subprocess.run([sys.executable, "-m", "twine", "check", "--strict", *both], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_it_installs_in_an_empty_environment_and_runs_the_readme(wheel, tmp_path):
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "env")], check=True)
    (python,) = [p for name in ("bin/python", "Scripts/python.exe") if (p := tmp_path / "env" / name).exists()]
    pip = [sys.executable, "-m", "pip", "-q", "--python", str(python), "install", "--no-deps", "--no-index"]
    subprocess.run([*pip, str(wheel)], check=True, capture_output=True)
    (site,) = {p.parent for p in (tmp_path / "env").rglob("floral_learn") if p.parent.name == "site-packages"}
    (site / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")

    examples = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.S)
    (example,) = (code for code in examples if "review.train" in code)
    script = tmp_path / "readme.py"
    script.write_text(example + "\nimport floral_learn\nprint(floral_learn.__file__)\n")
    done = subprocess.run([python, str(script)], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert Path(lines[-1]).is_relative_to(site), "the example ran with another floral-learn than the wheel's"
    assert float(lines[0]) > 0.9

    floral = python.with_name("floral")
    missing = subprocess.run([floral, "bench", "--list"], cwd=tmp_path, capture_output=True, text=True)
    assert missing.returncode == 2
    line = "floral bench: the benchmarks are a package of their own: pip install ./bench in a clone of floral-learn"
    assert missing.stderr.strip() == line


# What a user of each extra would try first; every line must end with 0.
FIRST_STEPS = {
    "": ["python -c 'from floral_learn import *; FloralClassifier(n_rounds=20).fit([[0.0], [1.0]] * 9, [0, 1] * 9)'"],
    "cli": [
        "floral train t.csv --label y --out m.skops", "floral predict m.skops t.csv --out p.csv",
        "floral audit t.csv --label y --out report", "floral certify t.csv --label y --out certificates",
        "floral review t.csv --label y --out review --finish --no-browser",
        "floral bench --list",
        "floral bench --data t.csv --label y --out runs --methods svm-libsvm --reps 1 --levels 0 --attack random",
    ],
    "all": [
        "floral train t.csv --label y --out m.skops", "floral bench --list", "python -c 'import torch, dask'",
        "python -c 'from floral_learn import LabelReview, TextClassifier'",
    ],
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("extra", FIRST_STEPS)
def test_with_its_own_dependencies_alone_it_takes_the_first_steps(wheel, extra, tmp_path):
    """An empty environment, both wheels, what they ask for and nothing else."""
    subprocess.run([sys.executable, "-m", "venv", str(tmp_path / "env")], check=True)
    scripts = tmp_path / "env" / ("bin" if (tmp_path / "env" / "bin").is_dir() else "Scripts")
    wheels = [f"{wheel}[{extra}]"] if extra else [str(wheel)]
    wheels += [str(built(ROOT / "bench", tmp_path))] if extra else []
    install = [scripts / "python", "-m", "pip", "-q", "--disable-pip-version-check", "install", *wheels]
    done = subprocess.run(install, capture_output=True, text=True)
    if "No matching distribution found" in done.stderr and "floral" not in done.stderr.splitlines()[-1]:
        pytest.skip("no package index can be reached")
    assert done.returncode == 0, done.stderr[-2000:]
    rows = [f"{i / 7:.3f},{i % 5},{'yes' if i % 2 else 'no'}" for i in range(60)]
    (tmp_path / "t.csv").write_text("a,b,y\n" + "\n".join(rows) + "\n")
    for step in FIRST_STEPS[extra]:
        command = shlex.split(step)
        found = subprocess.run([scripts / command[0], *command[1:]], cwd=tmp_path, capture_output=True, text=True)
        assert found.returncode == 0, f"{step}: {found.stderr[-1500:]}"
