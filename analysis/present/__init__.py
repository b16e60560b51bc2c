"""Results to what people and programs read: parts, views, and the words in both languages."""
