"""Votes of people who may lie: labels, a classifier, a judgement of the people, and what to ask next."""

from floral_learn.crowd.votes import Votes, read_votes

from .aggregate import VoteAggregation, aggregate_votes, next_tasks
from .classifier import CrowdClassifier

__all__ = ["CrowdClassifier", "VoteAggregation", "Votes", "aggregate_votes", "next_tasks", "read_votes"]
