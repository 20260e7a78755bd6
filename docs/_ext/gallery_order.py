"""The order of the gallery: from what it is about to how it works."""

ORDER = (
    "review", "boundaries", "security_curves", "attacks", "label_audit_digits", "annotators", "crowd",
    "multiclass_mnist", "image_embeddings", "text_minilm", "pipeline_pandas", "grid_search", "certificates", "transfer",
    "recovery", "dask", "theory_diagnostics",
)  # fmt: skip


def by_topic(file_name):
    """Place of an example; those that are not listed come last, by name."""
    name = file_name.removeprefix("plot_").removesuffix(".py")
    return (ORDER.index(name) if name in ORDER else len(ORDER), name)
