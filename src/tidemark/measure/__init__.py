"""Measurement, from a plan to run files: the timed loop, runs, series, and the oracle that checks them."""
