"""Kill the process at any point, start it again, and count from outside what was lost or done twice."""
