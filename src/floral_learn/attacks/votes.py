"""Attacks on votes: an attacker owns some of the annotators and chooses what they say.

``poison_votes(votes, X, y, attack=...)`` returns the votes with those of the owned annotators changed. The share of
votes in the attacker's hands is the budget; how many accounts it takes does not matter. Each attack is one function,
from a scene (what the attacker owns and knows) to all votes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from floral_learn.base import Shown
from floral_learn.base.alignment import align
from floral_learn.crowd.votes import Votes, read_votes


@dataclass(frozen=True)
class VoteScene:
    """What an attacker sees: the votes in its hands, what each of them would have been, and what it knows."""

    votes: Votes
    owned: np.ndarray  # numbers of the votes in the attacker's hands
    base: np.ndarray  # (V,) what a lie is about: the truth if informed, else the person's own vote
    X: np.ndarray | None
    truth: np.ndarray | None  # (n,) class codes
    order: np.ndarray  # (V,) position of each vote in time
    gold: np.ndarray  # (n,) items that the attacker knows to be test questions
    rng: np.random.Generator

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return len(self.votes.classes)


def spam(scene: VoteScene) -> np.ndarray:
    """Answer at random."""
    new = scene.votes.label.copy()
    new[scene.owned] = scene.rng.integers(scene.n_classes, size=len(scene.owned))
    return new


def pair(scene: VoteScene) -> np.ndarray:
    """Send each class to another one, always the same."""
    return _lie(scene, np.ones(len(scene.owned), dtype=bool))


def far(scene: VoteScene, share: float = 0.5) -> np.ndarray:
    """Lie only on the `share` of items that are far from a linear boundary, where a wrong label hurts a model most."""
    rows = scene.votes.item[scene.owned]
    score = _margins(scene)
    return _lie(scene, score[rows] >= np.quantile(score, 1 - share))


def sleeper(scene: VoteScene, share: float = 0.5) -> np.ndarray:
    """Be honest in the first `1 - share` of one's votes and on gold questions, and lie after that."""
    people = scene.votes.annotator[scene.owned]
    by_time = np.lexsort((scene.order[scene.owned], people))
    sizes = np.bincount(people, minlength=len(scene.votes.annotators))
    first = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    place = np.empty(len(people))
    place[by_time] = np.arange(len(people)) - first[people[by_time]]
    late = place >= (1 - share) * sizes[people]
    return _lie(scene, late & ~scene.gold[scene.votes.item[scene.owned]])


def collusion(scene: VoteScene, regions: int = 8) -> np.ndarray:
    """Agree on one lie for each item: the same one for all items of a region and class where features are known."""
    votes, k = scene.votes, scene.n_classes
    rows = votes.item[scene.owned]
    if scene.truth is not None and scene.base is not votes.label:
        about = scene.truth
    else:  # what the owned people believe together
        shares = np.zeros((len(votes.items), k))
        np.add.at(shares, (rows, votes.label[scene.owned]), 1.0)
        about = (shares + 1e-6 * scene.rng.random(shares.shape)).argmax(axis=1)
    if scene.X is None:
        shift = scene.rng.integers(1, k, size=len(votes.items))
    else:
        region = _regions(scene, regions)
        shift = scene.rng.integers(1, k, size=(region.max() + 1, k))[region, about]
    new = votes.label.copy()
    new[scene.owned] = ((about + shift) % k)[rows]
    return new


def targeted(scene: VoteScene, source: int | None = None, region: float | None = None) -> np.ndarray:
    """Lie about one class only (`source`, by default the most common), or about the `region` share around one item."""
    rows = scene.votes.item[scene.owned]
    if region is not None:
        if scene.X is None:
            raise ValueError("attack 'targeted': region needs X")
        Z = _scaled(scene.X)
        centre = Z[scene.rng.integers(len(Z))]
        distance = ((Z - centre) ** 2).sum(axis=1)
        return _lie(scene, distance[rows] <= np.quantile(distance, region))
    base = scene.base[scene.owned]
    if source is None:
        source = int(np.bincount(scene.base, minlength=scene.n_classes).argmax())
    elif not 0 <= source < scene.n_classes:
        raise ValueError(
            f"attack 'targeted': source={source} must be the number of a class, 0 to {scene.n_classes - 1}"
        )
    return _lie(scene, base == source)


# name on the command line -> function of a scene
VOTE_ATTACKS: dict[str, Callable[..., np.ndarray]] = {
    "spam": spam,
    "pair": pair,
    "far": far,
    "sleeper": sleeper,
    "collusion": collusion,
    "targeted": targeted,
}


def _lie(scene: VoteScene, where: np.ndarray) -> np.ndarray:
    new = scene.votes.label.copy()
    chosen = scene.owned[where]
    new[chosen] = (scene.base[chosen] + 1) % scene.n_classes  # each class becomes the one after it
    return new


def _scaled(X: np.ndarray) -> np.ndarray:
    spread = X.std(axis=0)
    return (X - X.mean(axis=0)) / np.where(spread > 0, spread, 1)


def _margins(scene: VoteScene) -> np.ndarray:
    """How clearly a linear model assigns each item to its class."""
    from sklearn.linear_model import LogisticRegression

    if scene.X is None:
        raise ValueError("attack 'far' needs X, the features of the items")
    target = scene.truth
    if target is None:
        target = scene.votes.shares.argmax(axis=1)
    if len(np.unique(target)) < 2:
        return np.zeros(len(target))
    Z = _scaled(scene.X)
    score = LogisticRegression(C=0.1, max_iter=300).fit(Z, target).predict_proba(Z)
    ranked = np.sort(score, axis=1)
    return ranked[:, -1] - ranked[:, -2]


def _regions(scene: VoteScene, regions: int) -> np.ndarray:
    from sklearn.cluster import KMeans

    Z = _scaled(np.asarray(scene.X))
    seed = int(scene.rng.integers(2**31 - 1))
    return KMeans(min(regions, len(Z)), n_init=1, random_state=seed).fit_predict(Z)


def choose_owned(votes: Votes, budget: float, rng: np.random.Generator) -> np.ndarray:
    """People, in random order, until their votes are the share `budget` of all, as closely as whole people allow."""
    sizes = votes.per_annotator
    goal, held = budget * sizes.sum(), 0.0
    mine = np.zeros(len(sizes), dtype=bool)
    for person in rng.permutation(len(sizes)):
        if held + sizes[person] <= goal + 1e-9:
            mine[person], held = True, held + sizes[person]
    return mine


def make_scene(
    votes: Votes, X: Any, y: Any, owned: np.ndarray, informed: bool, order: Any, gold: Any, rng: np.random.Generator
) -> VoteScene:
    """Check what the attacker is given."""
    n = len(votes.items)
    truth = None
    if y is not None:
        values = np.asarray(y)
        if values.shape != (n,):
            raise ValueError(f"y must hold the true class of each of the {n} items, got shape {values.shape}")
        if odd := sorted(set(np.unique(values).tolist()) - set(votes.classes.tolist())):
            raise ValueError(f"y holds classes that nobody voted for: {odd[:8]}; pass classes=")
        truth = np.searchsorted(votes.classes, values)
    if informed and truth is None:
        raise ValueError("informed=True needs y, the true classes")
    if X is not None and (len(np.shape(X)) != 2 or np.shape(X)[0] != n):
        raise ValueError(f"X must have one row for each of the {n} items, got shape {np.shape(X)}")
    time = np.arange(len(votes)) if order is None else np.asarray(order)[votes.item]
    known = np.zeros(n, dtype=bool)
    if gold is not None:
        known[np.asarray(gold)] = True
    base = truth[votes.item] if informed and truth is not None else votes.label
    features = None if X is None else np.asarray(X, dtype=float)
    cast = np.flatnonzero(owned[votes.annotator])
    return VoteScene(votes, cast, base, features, truth, time, known, rng)


@dataclass(frozen=True, repr=False)
class VotePoisonResult(Shown):
    """Votes after an attack."""

    votes: Any  # as they were given: a table or a long frame
    annotators: np.ndarray  # names of the people in the attacker's hands
    changed: int  # votes that differ from before
    share: float  # of all votes, in the attacker's hands

    def _facts(self) -> dict[str, str]:
        names = ", ".join(map(str, self.annotators[:5])) + (", ..." if len(self.annotators) > 5 else "")
        return {
            "votes changed": f"{self.changed:,}",
            "people in the attacker's hands": f"{len(self.annotators):,} ({names})",
            "their share of the votes": f"{100 * self.share:.1f} %",
        }


def poison_votes(
    votes: Any,
    X: Any = None,
    y: Any = None,
    *,
    attack: str = "pair",
    budget: float = 0.2,
    informed: bool = False,
    annotators: Any = None,
    order: Any = None,
    gold: Any = None,
    classes: Any = None,
    missing: Any = None,
    random_state: Any = None,
    **params: Any,
) -> VotePoisonResult:
    """Change the votes of annotators that hold `budget` of all votes, as a liar who owns them would.

    Parameters
    ----------
    votes : array or frame (n, annotators), or long frame with columns task, worker, label
        Never modified.
    X : array of shape (n, d), optional
        Features of the items; ``far`` needs them, ``collusion`` and ``targeted`` can use them.
    y : array-like of shape (n,), optional
        True classes; needed where `informed`.
    attack : str, default="pair"
        One of ``VOTE_ATTACKS``: spam (random), pair (each class to another one), far (only where it hurts), sleeper
        (honest at first and on gold questions), collusion (one agreed lie), targeted (one class or region).
    budget : float, default=0.2
        Share of the votes in the attacker's hands, in [0, 1].
    informed : bool, default=False
        Whether liars know the truth. An uninformed liar distorts the own noisy vote, which is harder to undo.
    annotators : list, optional
        Names of the owned people; by default drawn at random.
    order : array-like of shape (n,), optional
        When each item was voted on (sleeper); by default the order of the items.
    gold : array of item numbers, optional
        Test questions on which a sleeper is honest.
    classes, missing :
        As for `read_votes`: all classes, and the value that means "no vote".
    random_state : int, Generator or None
        Source of every random choice.
    **params : dict
        Parameters of the attack: ``share`` (far, sleeper), ``regions`` (collusion), ``source``, ``region`` (targeted).

    Returns
    -------
    VotePoisonResult
        The votes in the shape in which they came, and who was owned.

    Examples
    --------
    >>> import numpy as np
    >>> from floral_learn import poison_votes
    >>> votes = np.tile([[0], [1], [2], [0]], (1, 5))  # five people, all of them right
    >>> result = poison_votes(votes, attack="pair", budget=0.4, random_state=0)
    >>> len(result.annotators), result.changed
    (2, 8)
    """
    if attack not in VOTE_ATTACKS:
        raise ValueError(f"attack={attack!r} is unknown; choose one of {', '.join(VOTE_ATTACKS)}")
    if isinstance(budget, bool) or not isinstance(budget, int | float) or not 0 <= budget <= 1:
        raise ValueError(f"budget={budget!r} must be a share of the votes, from 0 to 1")
    function = VOTE_ATTACKS[attack]
    allowed = function.__code__.co_varnames[1 : function.__code__.co_argcount]
    if unknown := sorted(set(params) - set(allowed)):
        raise TypeError(
            f"attack {attack!r} has no parameter {', '.join(unknown)}; it has {', '.join(allowed) or 'none'}"
        )
    read = read_votes(votes, classes=classes, missing=missing)
    tasks, whose = (_named_tasks(read), "votes") if hasattr(votes, "iloc") else (X, "X")
    X = align(tasks, X, (whose, "X"))
    y = align(tasks, y, (whose, "y"))
    order = align(tasks, order, (whose, "order"))
    rng = np.random.default_rng(random_state)
    if annotators is None:
        owned = choose_owned(read, float(budget), rng)
    else:
        wanted = {annotators} if isinstance(annotators, str) else set(annotators)
        if odd := sorted(map(repr, wanted - set(read.annotators.tolist()))):
            raise ValueError(f"annotators: nobody called {', '.join(odd[:5])} voted")
        owned = np.isin(read.annotators, list(wanted))
    scene = make_scene(read, X, y, owned, informed, order, gold, rng)
    new = function(scene, **params) if len(read.classes) > 1 else read.label
    held = read.per_annotator[owned].sum() / read.per_annotator.sum()
    changed = int((new != read.label).sum())
    return VotePoisonResult(_written(votes, read, new), read.annotators[owned], changed, float(held))


def _named_tasks(read: Votes) -> Any:
    """Something whose index holds the names of the tasks."""
    import pandas as pd

    return pd.Series(0, index=pd.Index(read.items, tupleize_cols=False))


def _written(given: Any, read: Votes, new: np.ndarray) -> Any:
    """The votes in the shape in which they came."""
    differs = np.flatnonzero(new != read.label)
    names = read.classes[new[differs]]
    if hasattr(given, "columns") and {"task", "worker", "label"} <= {str(c) for c in given.columns}:
        copy = given.copy()
        said = {(read.items[i], read.annotators[a]): c for i, a, c in zip(
            read.item[differs], read.annotator[differs], names, strict=True)}  # fmt: skip
        old = copy["label"].tolist()
        keys = zip(copy["task"].tolist(), copy["worker"].tolist(), strict=True)
        copy["label"] = [said.get(key, label) for key, label in zip(keys, old, strict=True)]
        return copy
    place = {name: number for number, name in enumerate(_columns(given))}
    people = read.annotators[read.annotator[differs]].tolist()
    columns = np.array([place[name] for name in people], dtype=int)
    if hasattr(given, "iloc"):
        values = given.to_numpy(dtype=object, copy=True)
        values[read.item[differs], columns] = names
        return type(given)(values, index=given.index, columns=given.columns)
    table = np.array(given)
    table[read.item[differs], columns] = names
    return table


def _columns(given: Any) -> list[Any]:
    return list(given.columns) if hasattr(given, "columns") else list(range(np.shape(given)[1]))
