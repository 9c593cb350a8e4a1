"""Statistics: from samples to quantities with confidence intervals. This package neither measures nor draws."""
