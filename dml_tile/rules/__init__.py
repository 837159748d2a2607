"""What DirectML requires, one module for each subject, and `check`, which applies the rules of descriptors.

The rules of DxDispatch's parser stand with its model (``dxdispatch.rules``), those of specifications and back ends with
what they judge (``back_ends``), those of lowerings in ``lowering``; ``checks.catalogue`` lists all.
"""
