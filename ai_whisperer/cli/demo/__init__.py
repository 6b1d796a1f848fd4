"""The demo: the guide's workflows side by side, the plug pulled in the middle, and everything resumes."""
