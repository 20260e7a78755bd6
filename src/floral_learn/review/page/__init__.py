"""The review as a local page: ``floral review my.csv --label y --out review/``.

`server` speaks to the browser and `guard` decides who may; `session` takes answers, `store` keeps them, `worker` lays
out questions; `turns` says who looks at what; `engine` is the `LabelReview` behind it; `shown_rows`, `known`, `regions`
and `words` say things to people; `outputs` writes the files of the end; `work` puts it all together.
"""
