"""Pages that stand alone: the templates of a room with their styles and scripts, filled with escaped values."""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any

from floral_learn import __version__
from floral_learn.base.extras import install_line


def render_page(room: str, **values: Any) -> str:
    """A page (``templates/ROOM/page.html``, ``.css`` and ``.js``) as one HTML file; text from data is escaped.

    Values that are dicts under the name ``data`` are for the script: they become JSON that cannot end it.
    """
    try:
        from jinja2 import Environment
        from markupsafe import Markup
    except ImportError as error:
        raise ImportError(f"the page needs jinja2: {install_line('cli')}") from error
    here = files("floral_learn.app").joinpath("templates", room)
    ours = {
        kind: Markup(path.read_text(encoding="utf-8"))  # ours, not the data's
        for kind in ("css", "js")
        if (path := here.joinpath(f"page.{kind}")).is_file()
    }
    if "data" in values:
        values = values | {"data": Markup(script_json(values["data"]))}
    environment = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    template = environment.from_string(here.joinpath("page.html").read_text(encoding="utf-8"))
    return template.render(version=__version__, **ours, **values)


def script_json(value: Any) -> str:
    """JSON that is safe inside a script element: no text in it can close the element or open a comment."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text
