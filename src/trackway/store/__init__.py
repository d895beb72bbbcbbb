"""Events → bytes → events: the journal, the sealer, the stores. Interprets nothing beyond what an index row needs."""
