"""The machine: what it is, what it does while a window is open, and how cold it was before."""
