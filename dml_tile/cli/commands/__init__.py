"""The commands of the command line, one in each module; what a command needs is imported when it is called."""
