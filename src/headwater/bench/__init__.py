"""What Headwater costs, measured on the reader's own machine."""
