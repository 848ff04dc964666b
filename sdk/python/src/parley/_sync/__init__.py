# Generated from parley._async by scripts/generate.py. Do not edit.
"""The blocking client. `parley._sync` is generated from this package."""
