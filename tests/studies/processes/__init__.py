"""Tests that start a study's own load programs, and kill some of them."""
