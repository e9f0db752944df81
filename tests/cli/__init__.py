"""The command line, as its users meet it: processes, their output and their exit codes."""
