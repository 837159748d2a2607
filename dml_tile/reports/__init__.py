"""How findings, tables and descriptors are shown: each module writes one format."""
