"""``python -m composition_function --address HOST:PORT (--tls-certs-dir DIR | --insecure)``: serve until stopped."""

import click
from crossplane.function import logging, runtime

from composition_function.runner import FunctionRunner

# All claims of a kind come in one message; gRPC's own limit of 4 MB is reached by some thousand.
MESSAGE_LIMIT_MB = 64


@click.command()
@click.option("--address", default="0.0.0.0:9443", show_default=True, help="Where to listen.")
@click.option("--tls-certs-dir", envvar="TLS_SERVER_CERTS_DIR", help="Folder of tls.crt, tls.key and ca.crt (mTLS).")
@click.option("--insecure", is_flag=True, help="Serve without TLS: for tests and the embedded control plane only.")
@click.option(
    "--approvals",
    envvar="APPROVALS",
    type=click.Choice(["enforce", "warn"]),
    default="enforce",
    show_default=True,
    help="A claim without a valid signed approval: compose nothing new for it, or only say so in its condition.",
)
@click.option("--debug", is_flag=True, help="Log every call.")
def main(address: str, tls_certs_dir: str | None, insecure: bool, approvals: str, debug: bool) -> None:
    """Serve the composition function."""
    if not insecure and not tls_certs_dir:
        raise click.UsageError("give --tls-certs-dir, or --insecure for a control plane on the same machine")
    logging.configure(logging.Level.DEBUG if debug else logging.Level.INFO)
    limit = MESSAGE_LIMIT_MB * 1024 * 1024
    runtime.serve(
        FunctionRunner(enforce_approvals=approvals == "enforce"),
        address,
        creds=runtime.load_credentials(tls_certs_dir) if tls_certs_dir and not insecure else None,
        insecure=insecure,
        options=[
            ("grpc.max_receive_message_length", limit),
            ("grpc.max_send_message_length", limit),
            # A second function on the same port must fail, not share its calls.
            ("grpc.so_reuseport", 0),
        ],
    )


if __name__ == "__main__":
    main()
