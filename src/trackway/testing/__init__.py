"""For tests, ours and yours: ``StoreContract``, ready-made events, processes that die on cue."""
