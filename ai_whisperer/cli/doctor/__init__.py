"""`whisperer doctor`: looks whether everything that is needed is there, and says what to do where it is not."""
