"""`flow.sql`: a query in Spark's SQL, translated into the steps that Frame methods make."""

from headwater.flow.sql.translating import translate

__all__ = ["translate"]
