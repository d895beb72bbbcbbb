"""Full-text search over episodes: a derived index beside the store, and the tail of what is not in it yet."""
