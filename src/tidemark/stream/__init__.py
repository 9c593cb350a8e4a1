"""The stream from the trips to the system: a producer in a separate process, and a consumer."""
