"""DirectML's facts: enumerations, data types, feature levels, Windows releases, operators, reference pages."""
