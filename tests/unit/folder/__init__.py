"""Listing, opening and decoding real folders."""
