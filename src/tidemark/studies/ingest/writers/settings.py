"""Old place of the settings of the part `writers`."""

from tidemark.studies.ingest.settings import ONE, WRITERS, WritersSettings, mode_of

__all__ = ["ONE", "WRITERS", "WritersSettings", "mode_of"]
