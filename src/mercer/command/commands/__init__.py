"""One file for each command; `application.COMMANDS` says which."""
