"""The paper's figures and tables, one module each, and the data they need.

Not part of the installed library: run it from a checkout, with `python -m reproduction`
or `land reproduce`.
"""
