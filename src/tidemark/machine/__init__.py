"""The machine: its inventory, its activity while a window is open, and how cold it was before."""
