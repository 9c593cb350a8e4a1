"""How the shapes of run files are written and read, and what older versions called them."""
