"""The workspace service: watches folders of Markdown and puts the state of each file into the file log."""
