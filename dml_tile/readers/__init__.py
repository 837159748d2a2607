"""Where tiles come from: each module reads one kind of source, or speaks one dialect."""
