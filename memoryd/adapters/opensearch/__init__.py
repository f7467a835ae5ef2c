"""The text store on an OpenSearch server or cluster."""
