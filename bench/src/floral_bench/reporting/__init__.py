"""From stored rows to what people read: tables, pages, sentences, and a note of how they were made."""
