"""Numbers: from samples to quantities with intervals. Nothing here measures anything, and nothing here draws."""
