"""The demo: three agents analyse feedback and write a report; the process is killed in the middle."""
