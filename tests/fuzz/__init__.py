"""Coverage-guided fuzzing of what reads bytes from strangers, by atheris."""
