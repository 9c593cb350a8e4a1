"""Planner: a cost model of commits, and predictions from it for loads that were not measured."""
