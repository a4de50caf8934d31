"""The status of running parts: collected, drawn, and served over HTTP."""
