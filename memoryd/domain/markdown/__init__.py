"""Reads the structure of Markdown files: lines, front matter, headings and blocks."""
