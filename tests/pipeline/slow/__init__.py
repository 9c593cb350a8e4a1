"""Tests that start Snakemake, two to three seconds each time."""
