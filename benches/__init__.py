"""The figures: toolcrib against the bare call and against peers, measured in one process."""
