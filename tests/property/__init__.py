"""Properties of random tiles, held against independent oracles."""
