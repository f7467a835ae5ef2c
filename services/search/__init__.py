"""Search: query → legs → fuse → filter by outline → rerank → decay → answer."""
