"""Users' functions of batches and of groups, as Spark's workers call them: no plans here."""
