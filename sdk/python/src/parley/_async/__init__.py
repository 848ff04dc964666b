"""The asynchronous client. `parley._sync` is generated from this package."""
