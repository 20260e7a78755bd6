"""What liars say: one function per attack, from a scene (what the attacker owns and knows) to all votes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from floral_learn.crowd.votes import Votes


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

    def next_class(self, vote: np.ndarray) -> np.ndarray:
        """Each class to the one after it."""
        return (self.base[vote] + 1) % self.n_classes


def spam(scene: VoteScene) -> np.ndarray:
    """Answer at random."""
    new = scene.votes.label.copy()
    new[scene.owned] = scene.rng.integers(scene.n_classes, size=len(scene.owned))
    return new


def pair(scene: VoteScene) -> np.ndarray:
    """Send each class to another one, always the same."""
    new = scene.votes.label.copy()
    new[scene.owned] = scene.next_class(scene.owned)
    return new


def far(scene: VoteScene, share: float = 0.5) -> np.ndarray:
    """Lie only on the `share` of items that are far from a linear boundary, where a wrong label hurts a model most."""
    rows = scene.votes.item[scene.owned]
    score = _margins(scene)
    bound = np.quantile(score, 1 - share)
    return _lie(scene, score[rows] >= bound)


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
    new[chosen] = scene.next_class(chosen)
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
    return KMeans(min(regions, len(Z)), n_init=1, random_state=int(scene.rng.integers(2**31 - 1))).fit_predict(Z)
