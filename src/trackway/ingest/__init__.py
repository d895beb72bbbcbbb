"""Files that other programs left → events: what is it, what does it say, what of that is new."""
