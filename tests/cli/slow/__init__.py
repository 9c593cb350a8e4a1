"""Tests that start the command line many times, a second or more each."""
