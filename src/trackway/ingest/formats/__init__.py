"""One module a format; ``trackway.ingest.sources`` lists them. None imports another but for what it says it shares."""
