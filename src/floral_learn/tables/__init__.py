"""Your own tables: one reader, one encoder, cells that no spreadsheet runs."""
