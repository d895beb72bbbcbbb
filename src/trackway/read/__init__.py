"""Events → the shapes people ask for. Pure functions over an iterable of events; nothing here opens a store."""
