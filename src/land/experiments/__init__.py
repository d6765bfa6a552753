"""The paper's figures and tables, one file each."""
