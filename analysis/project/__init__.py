"""What a command works with: flags, the file of --config, the environment, the project file. The strongest wins."""
