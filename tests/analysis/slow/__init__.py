"""Tests of coverage by simulation: hundreds of run sets are drawn and analysed."""
