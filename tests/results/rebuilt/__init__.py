"""Tests of what is made from whole archives and from two stacks: documents, reference files, comparisons."""
