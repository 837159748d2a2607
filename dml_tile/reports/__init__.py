"""How findings are shown: each module writes one format."""
