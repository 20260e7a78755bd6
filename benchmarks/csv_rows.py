"""A file of rows to which a benchmark adds what is missing, and pages between whose marks its tables stand."""

import csv
import sys
import time
from multiprocessing import get_context

from floral_learn.base.files import write_atomically
from floral_learn.datasets import DataNotFoundError


def append(path, columns, work, tasks, jobs=1, seconds=float("inf")):
    """Rows of `work(task)` for every task with whose words no row begins; yields after each, none after `seconds`."""
    if not path.exists():
        path.write_text(",".join(columns) + "\n")
    with path.open() as stream:
        known = list(csv.reader(stream))
    end, tasks = time.monotonic() + seconds, list(tasks)
    known = {tuple(row[: len(tasks[0])]) for row in known} if tasks else set()
    left = [task for task in tasks if tuple(map(str, task)) not in known]
    with path.open("a", newline="") as stream, get_context("fork").Pool(jobs) as pool:
        for rows in pool.imap_unordered(work, left):
            csv.writer(stream, lineterminator="\n").writerows(rows)
            stream.flush()
            yield
            if time.monotonic() > end:
                pool.terminate()
                return


def present(names, load):
    """Those whose files are here; the others are named."""
    for name in names:
        try:
            load(name)
        except DataNotFoundError as error:
            print(f"{name} is left out: {error}", file=sys.stderr)
        else:
            yield name


def into_page(page, begin, text, end):
    """Replace what stands between two marks."""
    before, _, rest = page.read_text(encoding="utf-8").partition(begin)
    write_atomically(page, f"{before}{begin}\n{text}{end}{rest.partition(end)[2]}")
