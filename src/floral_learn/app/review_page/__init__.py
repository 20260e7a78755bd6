"""The review as a local page: ``floral review my.csv --label y --out review/``.

`server` speaks to the browser and `guard` decides who may; `asking` says who looks at what and takes answers, which
`store` keeps; `session` is a review and `judging` that of judges; `shown_rows` and `known` say things to people;
`outputs` writes the files of the end.
"""

from .asking import Turn
from .judging import JudgeSession
from .server import ReviewServer, bind
from .session import ReviewSession
from .shown_rows import ShownRows
from .store import AnswerStore, StoredAnswer, StoreError

__all__ = [
    "AnswerStore",
    "JudgeSession",
    "ReviewServer",
    "ReviewSession",
    "ShownRows",
    "StoreError",
    "StoredAnswer",
    "Turn",
    "bind",
]
