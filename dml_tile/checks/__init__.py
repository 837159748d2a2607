"""What is asked of files, and the verdicts. Prints nothing and knows no output format."""
