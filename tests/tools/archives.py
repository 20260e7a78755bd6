"""Model files taken apart, changed and packed again, as an enemy or an accident would."""

import io
import zipfile


def members(raw):
    """Name -> content of what an archive holds."""
    with zipfile.ZipFile(io.BytesIO(raw)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def packed(files, compression=zipfile.ZIP_STORED):
    """The bytes of a whole archive."""
    with zipfile.ZipFile(stream := io.BytesIO(), "w", compression) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return stream.getvalue()


def places(item):
    """Every value inside a schema as (what holds it, its key), outer ones first."""
    found = []
    for key, value in list(item.items() if isinstance(item, dict) else enumerate(item)):
        found.append((item, key))
        if isinstance(value, dict | list):
            found += places(value)
    return found
