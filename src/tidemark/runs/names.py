"""Names that run files are written and read with: the two ways of writing a stream, the stages of a time budget."""

SINGLE, BATCH = "single", "batch"  # one event a write, and many
MODES = (SINGLE, BATCH)
# Where the wall-clock of a window went, in the order in which an event meets them; `rest`: what none explains.
STAGES = ("poll", "decode", "assemble", "write", "bookkeeping", "wait_for_producer", "rest")
MAIN = "main"  # in place of a sweep's name: the configuration itself, beside which sweeps vary one setting
