"""Values of the decision as rows of words for templates: pure functions, no request and no database."""
