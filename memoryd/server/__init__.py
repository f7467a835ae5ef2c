"""What every gRPC server of memoryd shares: lifecycle, health, the handling of each call, errors as status."""
