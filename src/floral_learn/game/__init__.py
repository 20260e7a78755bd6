"""The game itself: arrays in, small dataclasses out; no files, no logging, no plots, no data set names."""
