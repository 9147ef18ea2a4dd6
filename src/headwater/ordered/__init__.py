"""Operators over rows in the order of their arrival, in Arrow and NumPy, without Spark.

A step takes the rows that have arrived for some keys, sorted, and what it kept of those before;
it gives results and what to keep. `headwater.lowering.ordered` runs steps in Spark.
"""
