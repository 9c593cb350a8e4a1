"""The stream between the trips and the system: a producer in its own process, and a consumer."""
