"""What optional libraries need: the line that installs one, at the end of every message, and an axis to draw on."""

from functools import lru_cache
from typing import Any


def install_line(extra: str, from_clone: bool | None = None) -> str:
    """The command that installs ``extra``, in the way in which floral-learn itself was installed.

    Examples
    --------
    >>> from floral_learn.base.extras import install_line
    >>> install_line("torch", from_clone=False)
    "pip install 'floral-learn[torch]'"
    >>> install_line("torch", from_clone=True)
    "pip install '.[torch]' in a clone of floral-learn"
    """
    if _installed_from_files() if from_clone is None else from_clone:
        return f"pip install '.[{extra}]' in a clone of floral-learn"
    return f"pip install 'floral-learn[{extra}]'"


def bench_install_line(peers: bool = False) -> str:
    """The command that installs the benchmarks, a package in the folder `bench` of a clone, with the peers or without.

    Examples
    --------
    >>> from floral_learn.base.extras import bench_install_line
    >>> bench_install_line()
    'pip install ./bench in a clone of floral-learn'
    """
    folder = "'./bench[peers]'" if peers else "./bench"
    return f"pip install {folder} in a clone of floral-learn"


def drawing_axis(ax: Any = None, figsize: tuple[float, float] | None = None) -> Any:
    """`ax`, or the axis of a new figure where it is None."""
    if ax is not None:
        return ax
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError(f"plots need matplotlib: {install_line('plot')}") from error
    return plt.subplots(figsize=figsize, layout="constrained")[1]


@lru_cache(maxsize=1)
def _installed_from_files() -> bool:
    """Whether the package comes from a clone, a folder or a wheel file: pip leaves a note of that (PEP 610)."""
    from importlib import metadata

    try:
        return metadata.distribution("floral-learn").read_text("direct_url.json") is not None
    except metadata.PackageNotFoundError:  # run from the source tree
        return True
