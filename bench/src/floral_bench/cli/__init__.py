"""The commands ``floral bench`` and ``floral report``, found by ``floral`` through an entry point."""
