"""The fault matrix: what breaks, and what is promised when it does."""
