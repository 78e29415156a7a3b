"""One module per command, listed in `application.COMMANDS`."""
