"""Results to what people and scripts read: parts, and the parts on a terminal, in Markdown, HTML and JSON."""
