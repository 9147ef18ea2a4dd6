"""The routes of the API, a module for each of its parts."""
