"""Results that print in a few lines and are a small table in a notebook."""

from html import escape


class Shown:
    """Base of result objects: `_facts` names what a reader wants to know first, and both forms are made from it."""

    def _facts(self) -> dict[str, str]:
        """Names and values, most important first; at most about six."""
        raise NotImplementedError

    def __repr__(self) -> str:
        facts = self._facts()
        width = max(map(len, facts), default=0)
        return "\n".join([type(self).__name__, *(f"  {name:{width}}  {text}" for name, text in facts.items())])

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><th>{escape(name)}</th><td>{escape(text)}</td></tr>" for name, text in self._facts().items()
        )
        head = f'<thead><tr><th colspan="2">{escape(type(self).__name__)}</th></tr></thead>'
        return f"<table>{head}<tbody>{rows}</tbody></table>"
