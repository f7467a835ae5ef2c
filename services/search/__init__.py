"""Search: query → legs → fuse → filter by outline → decay → answer."""
