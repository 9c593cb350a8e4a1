"""Tests that start a load generator of its own environment."""
