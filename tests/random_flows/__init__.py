"""Random flows on Spark, compared with the reference interpreter."""
