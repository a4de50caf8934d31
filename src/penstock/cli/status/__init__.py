"""How running parts are: collected, drawn, and served over HTTP."""
