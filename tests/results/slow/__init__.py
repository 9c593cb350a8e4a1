"""Tests that need seconds to minutes each: a paper, a browser, hundreds of runs, or all documents made again."""
