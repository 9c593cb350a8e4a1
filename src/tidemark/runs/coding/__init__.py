"""Encoding and decoding of run files, including files of older schema versions."""
