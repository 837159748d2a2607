"""A plugin of pytest's: Hypothesis' profile for mutants, of which one example that fails is enough."""

from __future__ import annotations

from hypothesis import Phase, settings

settings.register_profile("mutants", deadline=None, database=None, phases=[Phase.explicit, Phase.generate])
