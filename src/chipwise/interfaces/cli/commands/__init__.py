"""Takes parsed flags; gives an exit status. One module a command, imported when it is called."""
