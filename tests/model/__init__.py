"""The store and its journals beside a plain list of what was recorded."""
