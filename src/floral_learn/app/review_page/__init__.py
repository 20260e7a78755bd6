"""The review as a local page: ``floral review my.csv --label y --out review/``.

`server` speaks to the browser and `guard` decides who may; `session` takes answers, asks the `LabelReview` behind it
and lays out questions, `store` keeps answers, `turns` says who looks at what; `shown_rows`, `known` and `words` say
things to people; `outputs` writes the files of the end.
"""
