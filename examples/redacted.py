"""Redaction: a secret is hidden before anything is written, and only the key in the home brings it back."""

import re

import trackway

API_KEY = "sk-" + 24 * "x"  # looks like a real one, so the rules that trackway brings along know it
RULES = {"known": True, "customer": re.compile(r"CUST-\d+")}

with trackway.record("refund an order", agent="redacted", redact=RULES) as episode:
    episode.user("CUST-1042 wants a refund")
    call = episode.tool_call("http", {"url": "/refunds", "customer": "CUST-1042", "key": API_KEY})
    episode.tool_result(call, f"401: {API_KEY} may not refund CUST-1042", is_error=True)
    episode.text("The refund of CUST-1042 was refused.")
    episode.end("failure")

kept, lifted = trackway.open_store(), trackway.open_store(lift=True)
for hidden, clear in zip(kept.events(episode.id), lifted.events(episode.id), strict=True):
    if hidden.redacted:
        print(f"{hidden.kind}: hidden are {hidden.redacted}")
        print(f"  kept    {getattr(hidden, 'content', None) or hidden.args.decode()}")
        print(f"  lifted  {getattr(clear, 'content', None) or clear.args.decode()}")
