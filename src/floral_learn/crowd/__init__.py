"""Votes of people who may lie: labels, a classifier, a judgement of the people, and what to ask next."""

from floral_learn.crowd.votes import Votes, read_votes

from .aggregate import VoteAggregation, aggregate_votes
from .classifier import CrowdClassifier
from .next_tasks import next_tasks

__all__ = ["CrowdClassifier", "VoteAggregation", "Votes", "aggregate_votes", "next_tasks", "read_votes"]
