"""Lists of things to do, for several people in several browsers, with live queries."""
