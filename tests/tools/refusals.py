"""What wrong input gets."""

import pytest


def refuses(message, call, *args, error=ValueError, **options):
    """Assert that the call raises this error, in words that the pattern `message` finds; return the words."""
    with pytest.raises(error, match=message) as caught:
        call(*args, **options)
    return str(caught.value)
