"""One view a subject: a result to parts for people, or to a document for programs."""
