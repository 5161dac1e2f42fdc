"""A control plane with a Kubernetes API server in front of it, spoken to as the field manager `portal`.

    plane                  the port: what services are handed
    client, access         one API server: who we are there, requests, streams
    refusals, meanings     what it says when it says no, sorted by what that means
    paths, pointers        where objects and fields are
    deliver, dry_running   writing: apply, dry run, delete, namespaces, revisions
    observe, watching,
    streams, cursors       reading: get, list, watch
    claims, objects        its JSON as the port's shapes; provider-kubernetes' Objects
    explaining             Events
    fleet, keys            the workload clusters; the keys that approvals are verified with

Not in charge of: which claim is delivered when (services), or what its conditions mean (domain).
"""

from portal.adapters.kubernetes.plane import KubernetesControlPlane

__all__ = ["KubernetesControlPlane"]
