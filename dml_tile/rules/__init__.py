"""Every requirement that a finding can name, one module for each subject, and `check`, which applies them."""
