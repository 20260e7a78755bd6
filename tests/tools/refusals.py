"""What wrong input gets."""

import pytest


def refuses(message, call, *args, error=ValueError, **options):
    """Assert that the call raises this error with a message that the pattern `message` finds."""
    with pytest.raises(error, match=message):
        call(*args, **options)
