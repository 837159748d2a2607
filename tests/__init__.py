"""The tests of dml_tile."""
