"""Takes a typed object (one module a kind); gives its `Manifest`. Read `service.py` first: all are alike."""
