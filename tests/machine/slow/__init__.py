"""Tests of samplers, which need seconds to sample."""
