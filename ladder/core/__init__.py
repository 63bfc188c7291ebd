"""The decision: facts and an instant in, a pool out. No Django, no clock, no I/O, no logging.

To be read in this order: `values` (the facts), `quota` (is a window usable), `cooldown`, `money` (budgets and rungs),
`judge` (one pair), `priced_models`, `accounts` and `scope` (what is judged as what), `snapshot` (all facts of one
revision, each connection judged once), `sweep` (one pass over the candidates), `left_out` (why not), `pool` (the
answer), and `occupancy` with `places` (the ladder on the page). `whatif` asks the same of other facts.

What follows from decisions has a folder each: `timeline` (what changed when, and why), `spend` (the ledger), `readings`
(how fast a window is used up, what may be forgotten), `alerts`, and `demo` (a fleet that moves by itself).
"""
