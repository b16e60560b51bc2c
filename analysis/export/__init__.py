"""Where results are sent: to a chat, or to a command."""
