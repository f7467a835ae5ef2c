"""Reading a folder of Markdown: what belongs to it, opening it without leaving it, decoding it."""
