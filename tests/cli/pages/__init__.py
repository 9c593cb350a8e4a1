"""Tests of every command that the documentation names, and of every claim."""
