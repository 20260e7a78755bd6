"""A table, its answers and its review put together: what ``floral review`` opens."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from floral_learn.review.label_review import LabelReview
from floral_learn.review.page.engine import Engine, keep_order, seed_of
from floral_learn.review.page.known import describe
from floral_learn.review.page.outputs import Outputs
from floral_learn.review.page.session import ReviewSession
from floral_learn.review.page.shown_rows import ShownRows
from floral_learn.review.page.store import FILE, Answer, AnswerStore


class ReviewWork:
    """Everything between a table's file and its page.

    Parameters
    ----------
    table : Table
        From `read_table`, with labels.
    encoder : TableEncoder
        Not fitted.
    path : path
        The table's file.
    out : path
        The review's folder.
    options : mapping
        What must be the same when the review is resumed, beside the file's contents.
    seed : int, optional
        Makes questions repeatable and voids the guarantee.
    """

    def __init__(
        self, table: Any, encoder: Any, *, path: Path, out: Path, options: dict[str, Any], seed: int | None = None
    ) -> None:
        self.table, self.path, self.out = table, Path(path), Path(out)
        contents = hashlib.sha256(self.path.read_bytes()).hexdigest()
        about = {
            "other contents of the table": contents[:16],
            "another label column": str(table.label),
            "other options": json.dumps(options),
        }
        # A review that exists says first whether it is this one; a new one leaves nothing where the table is no good.
        exists = (self.out / FILE).exists()
        if exists:
            self.store = AnswerStore(self.out, about=about)
        try:
            self.X, self.encoder = encoder.fit_transform(table.features), encoder
            # Who gave a label is not shown with the question: it would sway the answer.
            self.rows = ShownRows(
                table.features, table.labels, self.X, folder=self.path.parent, ids=table.ids, numbers=table.rows
            )
            begun = seed_of(self.store, seed) if exists else seed
            review = LabelReview(self.X, table.labels, groups=table.groups, trusted=table.trusted, random_state=begun)
            if not exists:
                self.store = AnswerStore(self.out, about=about)
            self.engine = Engine(keep_order(review, self.store))
        except BaseException:
            if hasattr(self, "store"):
                self.store.close()
            raise

    @property
    def answered(self) -> int:
        """Answers that stand."""
        return sum(answer.kind != "skip" for answer in self.store.active())

    def start(self) -> ReviewSession:
        """The session behind the page; its worker starts at once."""
        return ReviewSession(self.rows, self.store, self.engine, describe=self._describe, finish=self._finish)

    def finish(self) -> list[dict[str, str]]:
        """Write the files of the end from the answers so far, without a page."""
        answers = self.store.active()
        self.engine.catch_up(answers, {str(label): label for label in self.rows.classes.tolist()})
        return self._finish(self.engine, answers)

    def _describe(self, engine: Engine, hurry: Callable[[], bool]) -> Iterator[dict[str, Any]]:
        return describe(engine.review, self.rows, self.table.groups, hurry)

    def _finish(self, engine: Engine, answers: Sequence[Answer]) -> list[dict[str, str]]:
        outputs = Outputs(
            self.out,
            self.path.name,
            self.path.suffix,
            relabelled=self.table.relabelled,
            save_model=self._save_model,
            rows=self.rows,
            groups=self.table.groups,
        )
        return outputs.write(engine.review, answers, self.encoder.notes_)

    def _save_model(self, review: Any, path: Path) -> None:
        """A FLORAL model behind the encoder that read the table, for ``floral predict``."""
        from sklearn.pipeline import Pipeline

        from floral_learn import FloralClassifier, save

        classifier = review.train(FloralClassifier(C=1.0, budget=0.05, random_state=0))
        save(Pipeline([("columns", self.encoder), ("classifier", classifier)]), path)


def file_names(suffix: str) -> list[str]:
    """Names of the files of the end."""
    return [f"cleaned{suffix}", "decisions.csv", "changes.csv", "model.skops", "report.html"]


def check_folder(out: Path, source: Path) -> None:
    """Refuse a folder that cannot be made, or in which the cleaned copy would replace the table."""
    if out.exists() and not out.is_dir():
        raise ValueError(f"--out {out} is a file; name a folder for the review")
    if not out.exists() and not out.parent.is_dir():
        raise ValueError(f"the folder {out.parent} of --out does not exist")
    for name in file_names(source.suffix):
        if source.exists() and (out / name).exists() and (out / name).samefile(source):
            raise ValueError(f"{source} would be overwritten by {name}; use another --out")
