"""Programs that maintain the repository; nothing at run time imports them."""
