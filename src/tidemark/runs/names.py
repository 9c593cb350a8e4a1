"""Names in run files: the two modes of writing a stream, and the stages of a time budget."""

SINGLE, BATCH = "single", "batch"  # one event per write, and many
MODES = (SINGLE, BATCH)
# Stages of a window's wall-clock time, in the order in which an event passes them; `rest`: time in none of them.
STAGES = ("poll", "decode", "assemble", "write", "bookkeeping", "wait_for_producer", "rest")
MAIN = "main"  # in place of a sweep's name: the configuration itself, of which sweeps vary one setting
